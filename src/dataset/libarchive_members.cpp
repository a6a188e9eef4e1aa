#include "dataset/members.h"
#include "libarchive/libarchive_directory.h"

namespace shf {

namespace {

class ListedMembers final : public Members {
  public:
    ListedMembers(Source& source, const Options& options, const Cancel& cancel)
        : source_(source),
          directory_(source, options, cancel),
          members_(directory_, options, cancel) {}

    [[nodiscard]] size_t count() const override { return directory_.size(); }
    [[nodiscard]] std::string_view name(size_t position) const override {
        return directory_.name(position);
    }
    // As of a tar that is compressed as a whole: what a member takes alone nobody says.
    [[nodiscard]] MemberInfo info(size_t position) const override {
        const LibarchiveEntry& entry = directory_.entry(position);
        return {.size = entry.size,
                .stored_size = entry.size,
                .method = 0,
                .crc = entry.crc,
                .offset = position,
                .kind = entry.kind};
    }
    void check(size_t position) const override { members_.check(position); }
    void read(size_t position, std::span<uint8_t> out, ZipScratch& /*scratch*/) const override {
        LibarchiveMembers::Pass(members_, source_, position, true).read(position, out);
    }
    [[nodiscard]] std::span<const uint8_t> view(size_t position) const override {
        members_.check(position);
        throw Error(SHF_E_UNSUPPORTED, "the bytes of this archive are not in memory as they are",
                    "read them");
    }

  private:
    Source& source_;
    const LibarchiveDirectory directory_;
    const LibarchiveMembers members_;
};

}  // namespace

std::unique_ptr<Members> libarchive_members(Source& source, const Options& options,
                                            const Cancel& cancel) {
    return std::make_unique<ListedMembers>(source, options, cancel);
}

}  // namespace shf
