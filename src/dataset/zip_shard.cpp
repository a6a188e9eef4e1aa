#include "core/options.h"
#include "dataset/dataset_shard.h"
#include "format/zip_entry.h"
#include "sample/grouper.h"
#include "sample/name.h"
#include "sample/schema_set.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace shf {

namespace {

// Groups the entries of a directory, in the order of the file.
class ZipGrouping final : private MemberFeed, private GrouperClient {
  public:
    explicit ZipGrouping(const ZipDirectory& directory)
        : directory_(directory), order_(directory.by_offset()) {}

    void run(const Options& options) {
        Stats stats;
        MemberFeed& feed = *this;
        GrouperClient& client = *this;
        Options unbounded = options;  // limits of size are for reading
        unbounded.memory = unbounded.max_member = unbounded.max_sample =
            std::numeric_limits<int64_t>::max();
        Grouper grouper(feed, unbounded, stats, client);
        grouper.run();
        if (grouper.samples() == 0 && !options.allow_empty)
            throw Error(SHF_E_FORMAT, "empty shard: there is no sample in it",
                        "allow_empty=true accepts shards without samples");
    }

    std::vector<uint32_t> entries;         // of all samples
    std::vector<uint32_t> first_entry{0};  // samples + 1
    std::vector<uint32_t> schema;          // of each sample
    SchemaSet schemas;

  private:
    bool next(Member& member) override {
        if (next_ == order_.size()) return false;
        current_ = order_[next_++];
        const ZipEntry& entry = directory_.entry(current_);
        if (entry.fault == ZipFault::directory_data) throw directory_.fault_of(current_);
        // A size that cannot be is a fault of that entry alone, said when it is read.
        member = {.kind = entry.kind,
                  .name = directory_.name(current_),
                  .header_offset = entry.offset,
                  .data_offset = entry.offset,
                  .size = std::min<uint64_t>(entry.size, std::numeric_limits<int32_t>::max())};
        return true;
    }
    void finish() override {}
    void skip(const Member& /*member*/) override {}
    // What is wrong with an entry is said when its sample is read.
    std::optional<Fault> take(const Member& /*member*/) override {
        kept_.push_back(current_);
        return std::nullopt;
    }
    void release() override { kept_.clear(); }

    void sample(const GroupedSample& sample) override {
        entries.insert(entries.end(), kept_.begin(), kept_.end());
        first_entry.push_back(static_cast<uint32_t>(entries.size()));
        schema.push_back(schemas.number(sample.schema));
    }
    void bad_sample(Fault fault) override { throw Error(std::move(fault)); }

    const ZipDirectory& directory_;
    const std::vector<uint32_t> order_;
    size_t next_ = 0;
    uint32_t current_ = 0;
    std::vector<uint32_t> kept_;
};

class ZipShard final : public DatasetShard {
  public:
    ZipShard(const std::string& url, uint64_t shard, std::unique_ptr<Source> source,
             const DatasetContext& context)
        : context_(context),
          origin_(std::make_shared<Origin>(
              Origin{.url = redact(url), .shard = shard, .epoch = 0, .lane = 0})),
          directory_(*source, context.options),
          groups_(directory_),
          file_(url, std::move(source), context.options, context.cancel, context.budget) {
        groups_.run(context.options);
    }

    [[nodiscard]] size_t samples() const override { return groups_.schema.size(); }
    [[nodiscard]] std::string_view key(size_t sample) const override {
        return split_name(directory_.name(first(sample))).key;
    }
    [[nodiscard]] uint64_t offset(size_t sample) const override {
        return directory_.entry(first(sample)).offset;
    }
    [[nodiscard]] uint64_t bytes(size_t sample) const override {
        uint64_t sum = 0;
        for (const uint32_t entry : entries(sample))
            if (__builtin_add_overflow(sum, directory_.entry(entry).size, &sum))
                return std::numeric_limits<uint64_t>::max();
        return sum;
    }

    [[nodiscard]] BlockRef read(size_t sample) const override {
        const uint64_t size = bytes(sample);
        const auto limit = [&](const char* option, uint64_t bound) {
            if (size > bound)
                throw Error(SHF_E_LIMIT,
                            "a sample of " + std::to_string(size) + " bytes is larger than " +
                                option + "=" + std::to_string(bound),
                            std::string("raise ") + option, offset(sample));
        };
        limit("max_sample", context_.options.max_sample);
        limit("memory", context_.options.memory);
        const auto list = entries(sample);
        const ShardFile::Lease source(file_);
        const ScratchPool::Lease scratch(context_.scratches);
        const ZipReader reader(*source, directory_, context_.options);
        std::vector<PlacedField> fields;
        fields.reserve(list.size());
        size_t total = 0;
        for (const uint32_t entry : list) {
            const auto entry_size = static_cast<size_t>(directory_.entry(entry).size);
            // Small fields stay close together: a kept sample holds little more than its bytes.
            const size_t unit = entry_size >= alignment ? alignment : 1;
            total = (total + unit - 1) / unit * unit;
            fields.push_back({total, entry_size});
            total += entry_size;
        }
        const StorageRef storage = context_.memory.acquire(total);
        for (size_t i = 0; i < list.size(); ++i)
            reader.read(list[i], {storage->data + fields[i].start, fields[i].size}, *scratch);
        return make_sample(key(sample), offset(sample), origin_,
                           groups_.schemas.list()[groups_.schema[sample]], storage, fields);
    }

  private:
    static constexpr size_t alignment = 64;

    [[nodiscard]] uint32_t first(size_t sample) const {
        return groups_.entries[groups_.first_entry[sample]];
    }
    [[nodiscard]] std::span<const uint32_t> entries(size_t sample) const {
        const size_t begin = groups_.first_entry[sample];
        return std::span(groups_.entries).subspan(begin, groups_.first_entry[sample + 1] - begin);
    }

    const DatasetContext& context_;
    const std::shared_ptr<const Origin> origin_;
    const ZipDirectory directory_;
    ZipGrouping groups_;
    const ShardFile file_;
};

}  // namespace

std::unique_ptr<DatasetShard> zip_dataset_shard(const std::string& url, uint64_t shard,
                                                std::unique_ptr<Source> source,
                                                const DatasetContext& context) {
    return std::make_unique<ZipShard>(url, shard, std::move(source), context);
}

}  // namespace shf
