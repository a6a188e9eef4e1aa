#include "core/options.h"
#include "dataset/members.h"

namespace shf {

namespace {

class ZipMembers final : public Members {
  public:
    ZipMembers(Source& source, std::span<const uint8_t> memory, const Options& options)
        : directory_(source, options), reader_(source, directory_, options), memory_(memory) {}

    [[nodiscard]] size_t count() const override { return directory_.size(); }
    [[nodiscard]] std::string_view name(size_t position) const override {
        return directory_.name(position);
    }
    [[nodiscard]] MemberInfo info(size_t position) const override {
        const ZipEntry& entry = directory_.entry(position);
        return {.size = entry.size,
                .stored_size = entry.stored_size,
                .method = entry.method,
                .crc = entry.crc,
                .offset = entry.offset,
                .kind = entry.kind};
    }
    void check(size_t position) const override { reader_.check(position); }
    void read(size_t position, std::span<uint8_t> out, ZipScratch& scratch) const override {
        reader_.read(position, out, scratch);
    }
    [[nodiscard]] std::span<const uint8_t> view(size_t position) const override {
        return reader_.view(position, in_memory(memory_));
    }

  private:
    const ZipDirectory directory_;
    const ZipReader reader_;
    const std::span<const uint8_t> memory_;
};

}  // namespace

std::unique_ptr<Members> zip_members(Source& source, std::span<const uint8_t> memory,
                                     const Options& options) {
    return std::make_unique<ZipMembers>(source, memory, options);
}

}  // namespace shf
