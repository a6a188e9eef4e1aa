#include "dataset/entry_shard.h"
#include "libarchive/libarchive_directory.h"

namespace shf {

namespace {

class LibarchiveShard final : public EntryShard<LibarchiveDirectory> {
  public:
    LibarchiveShard(const std::string& url, uint64_t shard, std::unique_ptr<Source> source,
                    const DatasetContext& context)
        : EntryShard(url, shard, std::move(source), context,
                     [&](Source& opened) {
                         return LibarchiveDirectory(opened, context.options, context.cancel);
                     }),
          members_(directory(), context.options, context.cancel) {}

    [[nodiscard]] uint64_t offset(size_t sample) const override { return first(sample); }

  private:
    [[nodiscard]] bool has_places() const override { return false; }
    [[nodiscard]] bool has_checksums() const override { return false; }
    [[nodiscard]] BlockRef read_block(std::span<const size_t> samples,
                                      Source& source) const override {
        return read_entries(
            samples,
            [&](size_t sample) {
                for (const uint32_t number : choice(sample).numbers)
                    members_.check(groups()[sample][number]);
            },
            [&] {
                return LibarchiveMembers::Pass(members_, source, first(samples[0]),
                                               file().keeps(source));
            });
    }

    const LibarchiveMembers members_;  // destroyed before the file: it has readers of it
};

}  // namespace

std::unique_ptr<DatasetShard> libarchive_dataset_shard(const std::string& url, uint64_t shard,
                                                       std::unique_ptr<Source> source,
                                                       const DatasetContext& context) {
    return std::make_unique<LibarchiveShard>(url, shard, std::move(source), context);
}

}  // namespace shf
