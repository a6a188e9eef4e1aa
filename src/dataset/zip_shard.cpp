#include "dataset/entry_shard.h"
#include "zip/zip_entry.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

namespace shf {

namespace {

class ZipShard final : public EntryShard<ZipDirectory> {
  public:
    ZipShard(const std::string& url, uint64_t shard, std::unique_ptr<Source> source,
             const DatasetContext& context)
        : EntryShard(url, shard, std::move(source), context,
                     [&](Source& opened) { return ZipDirectory(opened, context.options); }),
          is_checked_(std::make_unique<std::atomic<bool>[]>(groups().size())) {
        // Around the samples is checked when they are read. Where the directory has another order
        // than the file, an entry may be missing from any sample; where there are no samples, from
        // one that would be there.
        if (directory().sorted() && groups().size() > 0) return;
        const ShardFile::Lease lease(file());
        const ZipReader reader(*lease, directory(), context.options);
        for (size_t i = 0; i < directory().size(); ++i) reader.check_place(i);
    }

    [[nodiscard]] uint64_t offset(size_t sample) const override {
        return directory().entry(first(sample)).offset;
    }

  private:
    struct FieldReader {
        const ZipReader& entries;
        const ScratchPool::Lease scratch;

        void read(uint32_t entry, std::span<uint8_t> out) const {
            entries.read(entry, out, *scratch);
        }
    };

    [[nodiscard]] bool has_checksums() const override { return true; }
    [[nodiscard]] BlockRef read_block(std::span<const size_t> samples,
                                      Source& source) const override {
        const ZipReader reader(source, directory(), context().options);
        if (samples.size() == 1 && bytes(samples[0]) >= shown_from)
            if (auto mapping = source.mapping(); mapping && lies_together(samples[0], reader)) {
                check_around(samples[0], reader);
                const auto file = mapping->bytes();
                return show_entries(samples[0], mapping->memory(), file, [&](uint32_t entry) {
                    mapping->expect(reader.range(entry), false);
                    return reader.view(entry, file);
                });
            }
        return read_entries(
            samples, [&](size_t sample) { check_around(sample, reader); },
            [&] {
                return FieldReader{reader, ScratchPool::Lease(context().scratches)};
            });
    }

    // Whether the wanted entries are stored, and little else is between them.
    [[nodiscard]] bool lies_together(size_t sample, const ZipReader& reader) const {
        uint64_t from = UINT64_MAX, to = 0;
        for (const uint32_t number : choice(sample).numbers) {
            const uint32_t entry = groups()[sample][number];
            const ByteRange range = reader.range(entry);
            if (directory().entry(entry).method != 0 || range.size == 0) return false;
            from = std::min(from, range.offset);
            to = std::max(to, range.offset + range.size);
        }
        return to - from <= 2 * bytes(sample) + 4 * uint64_t{UINT16_MAX};
    }

    // The directory may have a wrong name for a field of this sample: then it is in a sample before
    // or behind, or in none. So all entries from one neighbour to the other are compared with their
    // local headers, but the sample's own wanted ones, which are compared when they are read.
    void check_around(size_t sample, const ZipReader& reader) const {
        if (!directory().sorted() || is_checked_[sample].load(std::memory_order_relaxed)) return;
        const auto own = groups()[sample];
        const auto& wanted = choice(sample).numbers;
        const size_t begin = sample == 0 ? 0 : groups()[sample - 1].back();
        const size_t end =
            sample + 1 == groups().size() ? directory().size() : groups()[sample + 1].front() + 1;
        for (size_t entry = begin, next = 0; entry < end; ++entry) {
            if (next < wanted.size() && own[wanted[next]] == entry)
                ++next;
            else
                reader.check_place(entry);
        }
        is_checked_[sample].store(true, std::memory_order_relaxed);
    }

    // Of each sample, whether what is around it was found right. Nothing hangs on the order in
    // which threads see these, and a forked child that does not only looks once more.
    const std::unique_ptr<std::atomic<bool>[]> is_checked_;
};

}  // namespace

std::unique_ptr<DatasetShard> zip_dataset_shard(const std::string& url, uint64_t shard,
                                                std::unique_ptr<Source> source,
                                                const DatasetContext& context) {
    return std::make_unique<ZipShard>(url, shard, std::move(source), context);
}

}  // namespace shf
