#include "core/options.h"
#include "dataset/dataset_shard.h"
#include "dataset/wanted_fields.h"
#include "sample/entry_groups.h"
#include "sample/name.h"
#include "url/redact.h"
#include "zip/zip_entry.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <limits>
#include <memory_resource>
#include <utility>
#include <vector>

namespace shf {

namespace {

class ZipShard final : public DatasetShard {
  public:
    ZipShard(const std::string& url, uint64_t shard, std::unique_ptr<Source> source,
             const DatasetContext& context)
        : context_(context),
          origin_(std::make_shared<Origin>(Origin{
              .url = redact(url), .shard = shard, .epoch = 0, .lane = 0, .by_number = true})),
          directory_(*source, context.options),
          groups_(zip_groups(directory_, context.options)),
          wanted_(context.fields, groups_.schemas()),
          is_checked_(std::make_unique<std::atomic<bool>[]>(groups_.size())),
          file_(url, std::move(source), context.sources, context.budget) {
        // Around the samples is checked when they are read. Where the directory has another order
        // than the file, an entry may be missing from any sample; where there are no samples, from
        // one that would be there.
        if (directory_.sorted() && groups_.size() > 0) return;
        const ShardFile::Lease lease(file_);
        const ZipReader reader(*lease, directory_, context_.options);
        for (size_t i = 0; i < directory_.size(); ++i) reader.check_place(i);
    }

    [[nodiscard]] size_t samples() const override { return groups_.size(); }
    [[nodiscard]] std::string_view key(size_t sample) const override {
        return split_name(directory_.name(first(sample))).key;
    }
    [[nodiscard]] uint64_t names_size() const override { return directory_.names_size(); }
    [[nodiscard]] uint64_t offset(size_t sample) const override {
        return directory_.entry(first(sample)).offset;
    }
    [[nodiscard]] uint64_t bytes(size_t sample) const override {
        uint64_t sum = 0;
        for (const uint32_t number : choice(sample).numbers)
            if (__builtin_add_overflow(sum, directory_.entry(groups_[sample][number]).size, &sum))
                return std::numeric_limits<uint64_t>::max();
        return sum;
    }

  private:
    static constexpr size_t alignment = 64;

    [[nodiscard]] const ShardFile& file() const override { return file_; }
    [[nodiscard]] uint64_t room(size_t sample) const override {
        const uint64_t size = bytes(sample);
        const uint64_t tables =
            key(sample).size() + alignment * (1 + choice(sample).numbers.size());
        return size > std::numeric_limits<uint64_t>::max() - tables ? size : size + tables;
    }
    [[nodiscard]] bool has_checksums() const override { return true; }
    [[nodiscard]] BlockRef read_block(std::span<const size_t> samples,
                                      Source& source) const override {
        std::array<std::byte, 4096> stack;  // enough for most samples, and faster than the heap
        std::pmr::monotonic_buffer_resource memory(stack.data(), stack.size());
        std::pmr::vector<PlacedField> fields(&memory);
        std::pmr::vector<PlacedSample> placed(&memory);
        placed.reserve(samples.size());
        const ZipReader reader(source, directory_, context_.options);
        size_t total = 0;
        for (const size_t sample : samples) {
            check_limits(sample);
            check_around(sample, reader);
            placed.push_back({key(sample), offset(sample), choice(sample).schema});
            for (const uint32_t number : choice(sample).numbers) {
                const auto size =
                    static_cast<size_t>(directory_.entry(groups_[sample][number]).size);
                // Small fields stay close together: a kept sample holds little more than its bytes.
                const size_t unit = size >= alignment ? alignment : 1;
                total = (total + unit - 1) / unit * unit;
                fields.push_back({total, size});
                total += size;
            }
        }
        StorageRef storage = context_.memory.acquire(total);
        const ScratchPool::Lease scratch(context_.scratches);
        auto field = fields.begin();
        for (const size_t sample : samples)
            for (const uint32_t number : choice(sample).numbers) {
                reader.read(groups_[sample][number], {storage->data + field->start, field->size},
                            *scratch);
                ++field;
            }
        return make_block(placed, fields, origin_, std::move(storage));
    }

    void check_limits(size_t sample) const {
        const uint64_t size = bytes(sample);
        const auto limit = [&](const char* option, uint64_t bound) {
            if (size > bound)
                throw Error(SHF_E_LIMIT,
                            "a sample of " + plural(size, "byte") + " is larger than " + option +
                                "=" + std::to_string(bound),
                            std::string("raise ") + option, offset(sample));
        };
        limit("max_sample", context_.options.max_sample);
        limit("memory", context_.options.memory);
    }

    [[nodiscard]] uint32_t first(size_t sample) const { return groups_[sample][0]; }
    [[nodiscard]] const WantedFields::Choice& choice(size_t sample) const {
        return wanted_[groups_.schema_number(sample)];
    }

    // The directory may have a wrong name for a field of this sample: then it is in a sample before
    // or behind, or in none. So all entries from one neighbour to the other are compared with their
    // local headers, but the sample's own wanted ones, which are compared when they are read.
    void check_around(size_t sample, const ZipReader& reader) const {
        if (!directory_.sorted() || is_checked_[sample].load(std::memory_order_relaxed)) return;
        const auto own = groups_[sample];
        const auto& wanted = choice(sample).numbers;
        const size_t begin = sample == 0 ? 0 : groups_[sample - 1].back();
        const size_t end =
            sample + 1 == groups_.size() ? directory_.size() : groups_[sample + 1].front() + 1;
        for (size_t entry = begin, next = 0; entry < end; ++entry) {
            if (next < wanted.size() && own[wanted[next]] == entry)
                ++next;
            else
                reader.check_place(entry);
        }
        is_checked_[sample].store(true, std::memory_order_relaxed);
    }

    const DatasetContext& context_;
    const std::shared_ptr<const Origin> origin_;
    const ZipDirectory directory_;
    const EntryGroups groups_;
    const WantedFields wanted_;
    // Of each sample, whether what is around it was found right. Nothing hangs on the order in
    // which threads see these, and a forked child that does not only looks once more.
    const std::unique_ptr<std::atomic<bool>[]> is_checked_;
    const ShardFile file_;
};

}  // namespace

std::unique_ptr<DatasetShard> zip_dataset_shard(const std::string& url, uint64_t shard,
                                                std::unique_ptr<Source> source,
                                                const DatasetContext& context) {
    return std::make_unique<ZipShard>(url, shard, std::move(source), context);
}

}  // namespace shf
