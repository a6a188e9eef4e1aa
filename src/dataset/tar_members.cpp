#include "dataset/members.h"
#include "tar/tar_directory.h"

#include <limits>

namespace shf {

namespace {

class TarMembers final : public Members {
  public:
    TarMembers(Source& source, std::span<const uint8_t> memory, const Options& options,
               const Cancel& cancel)
        : directory_(source, options, cancel),
          reader_(source, directory_, options, cancel),
          memory_(memory) {}

    [[nodiscard]] size_t count() const override { return directory_.size(); }
    [[nodiscard]] std::string_view name(size_t position) const override {
        return directory_.name(position);
    }
    [[nodiscard]] MemberInfo info(size_t position) const override {
        const TarEntry& entry = directory_.entry(position);
        return {.size = entry.size,
                .stored_size = entry.size,
                .method = 0,
                .crc = std::numeric_limits<uint64_t>::max(),
                .offset = entry.offset,
                .kind = entry.kind};
    }
    void check(size_t position) const override { reader_.check(position); }
    void read(size_t position, std::span<uint8_t> out, ZipScratch& /*scratch*/) const override {
        reader_.read(position, out);
    }
    [[nodiscard]] std::span<const uint8_t> view(size_t position) const override {
        reader_.check(position);
        return reader_.view(position, in_memory(memory_));
    }

  private:
    const TarDirectory directory_;
    const TarReader reader_;
    const std::span<const uint8_t> memory_;
};

}  // namespace

std::unique_ptr<Members> tar_members(Source& source, std::span<const uint8_t> memory,
                                     const Options& options, const Cancel& cancel) {
    return std::make_unique<TarMembers>(source, memory, options, cancel);
}

}  // namespace shf
