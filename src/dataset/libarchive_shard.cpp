#include "core/options.h"
#include "dataset/dataset_shard.h"
#include "dataset/wanted_fields.h"
#include "libarchive/libarchive_directory.h"
#include "sample/entry_groups.h"
#include "sample/name.h"
#include "url/redact.h"

#include <limits>
#include <utility>
#include <vector>

namespace shf {

namespace {

class LibarchiveShard final : public DatasetShard {
  public:
    LibarchiveShard(const std::string& url, uint64_t shard, std::unique_ptr<Source> source,
                    const DatasetContext& context)
        : context_(context),
          origin_(std::make_shared<Origin>(Origin{
              .url = redact(url), .shard = shard, .epoch = 0, .lane = 0, .by_number = true})),
          directory_(*source, context.options, context.cancel),
          groups_(libarchive_groups(directory_, context.options)),
          wanted_(context.fields, groups_.schemas()),
          file_(url, std::move(source), context.sources, context.budget),
          members_(directory_, context.options, context.cancel) {}

    [[nodiscard]] size_t samples() const override { return groups_.size(); }
    [[nodiscard]] std::string_view key(size_t sample) const override {
        return split_name(directory_.name(groups_[sample][0])).key;
    }
    [[nodiscard]] uint64_t names_size() const override { return directory_.names_size(); }
    [[nodiscard]] uint64_t offset(size_t sample) const override { return groups_[sample][0]; }
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
    [[nodiscard]] bool has_places() const override { return false; }
    [[nodiscard]] bool has_checksums() const override { return false; }
    [[nodiscard]] BlockRef read_block(std::span<const size_t> samples,
                                      Source& source) const override {
        std::vector<PlacedField> fields;
        std::vector<PlacedSample> placed;
        size_t total = 0;
        for (const size_t sample : samples) {
            check_limits(sample);
            placed.push_back({key(sample), offset(sample), choice(sample).schema});
            for (const uint32_t number : choice(sample).numbers) {
                const uint32_t entry = groups_[sample][number];
                members_.check(entry);
                const auto size = static_cast<size_t>(directory_.entry(entry).size);
                // Small fields stay close together, as in the shard of a ZIP file.
                const size_t unit = size >= alignment ? alignment : 1;
                total = (total + unit - 1) / unit * unit;
                fields.push_back({total, size});
                total += size;
            }
        }
        StorageRef storage = context_.memory.acquire(total);
        if (!fields.empty()) {
            LibarchiveMembers::Pass pass(members_, source, groups_[samples[0]][0],
                                         file_.keeps(source));
            auto field = fields.begin();
            for (const size_t sample : samples)
                for (const uint32_t number : choice(sample).numbers) {
                    pass.read(groups_[sample][number], {storage->data + field->start, field->size});
                    ++field;
                }
        }
        return make_block(placed, fields, origin_, std::move(storage));
    }

    void check_limits(size_t sample) const {
        const uint64_t size = bytes(sample);
        const auto limit = [&](const char* option, uint64_t bound) {
            if (size > bound)
                throw Error(Fault{.code = SHF_E_LIMIT,
                                  .shard = {},
                                  .member = escape(directory_.name(groups_[sample][0])),
                                  .cause = "a sample of " + plural(size, "byte") +
                                           " is larger than " + option + "=" +
                                           std::to_string(bound),
                                  .help = std::string("raise ") + option});
        };
        limit("max_sample", context_.options.max_sample);
        limit("memory", context_.options.memory);
    }

    [[nodiscard]] const WantedFields::Choice& choice(size_t sample) const {
        return wanted_[groups_.schema_number(sample)];
    }

    const DatasetContext& context_;
    const std::shared_ptr<const Origin> origin_;
    const LibarchiveDirectory directory_;
    const EntryGroups groups_;
    const WantedFields wanted_;
    const ShardFile file_;
    const LibarchiveMembers members_;  // before the file: it has readers of it
};

}  // namespace

std::unique_ptr<DatasetShard> libarchive_dataset_shard(const std::string& url, uint64_t shard,
                                                       std::unique_ptr<Source> source,
                                                       const DatasetContext& context) {
    return std::make_unique<LibarchiveShard>(url, shard, std::move(source), context);
}

}  // namespace shf
