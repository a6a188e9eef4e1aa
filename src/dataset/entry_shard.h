// A dataset's shard of a format with a directory of entries: what ZIP files and the archives that
// libarchive reads have in common.
#pragma once

#include "core/options.h"
#include "dataset/dataset_shard.h"
#include "dataset/wanted_fields.h"
#include "sample/entry_groups.h"
#include "sample/name.h"
#include "url/redact.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <memory_resource>
#include <utility>
#include <vector>

namespace shf {

// `Directory` has names_size(), and name(i) and entry(i).size of each entry. A template, so that
// nothing virtual is called for a field.
template <typename Directory>
class EntryShard : public DatasetShard {
  public:
    [[nodiscard]] size_t samples() const final { return groups_.size(); }
    [[nodiscard]] std::string_view key(size_t sample) const final {
        return split_name(directory_.name(first(sample))).key;
    }
    [[nodiscard]] uint64_t names_size() const final { return directory_.names_size(); }
    [[nodiscard]] const Schema& schema(size_t sample) const final {
        return *groups_.schemas()[groups_.schema_number(sample)];
    }
    [[nodiscard]] uint64_t bytes(size_t sample) const final {
        uint64_t sum = 0;
        for (const uint32_t number : choice(sample).numbers)
            if (__builtin_add_overflow(sum, directory_.entry(groups_[sample][number]).size, &sum))
                return std::numeric_limits<uint64_t>::max();
        return sum;
    }

  protected:
    // `make_directory(Source&)` returns the directory of the open shard.
    template <typename MakeDirectory>
    EntryShard(const std::string& url, uint64_t shard, std::unique_ptr<Source> source,
               const DatasetContext& context, const MakeDirectory& make_directory)
        : context_(context),
          origin_(std::make_shared<Origin>(Origin{
              .url = redact(url), .shard = shard, .epoch = 0, .lane = 0, .by_number = true})),
          directory_(make_directory(*source)),
          groups_(entry_groups(directory_, context.options)),
          wanted_(context.fields, groups_.schemas()),
          file_(url, std::move(source), context.sources, context.budget) {}

    [[nodiscard]] const ShardFile& file() const final { return file_; }
    [[nodiscard]] uint64_t room(size_t sample) const final {
        const uint64_t size = bytes(sample);
        const uint64_t tables =
            key(sample).size() + alignment * (1 + choice(sample).numbers.size());
        return size > std::numeric_limits<uint64_t>::max() - tables ? size : size + tables;
    }

    [[nodiscard]] const DatasetContext& context() const { return context_; }
    [[nodiscard]] const Directory& directory() const { return directory_; }
    [[nodiscard]] const EntryGroups& groups() const { return groups_; }
    [[nodiscard]] uint32_t first(size_t sample) const { return groups_[sample][0]; }
    [[nodiscard]] const WantedFields::Choice& choice(size_t sample) const {
        return wanted_[groups_.schema_number(sample)];
    }

    // The wanted fields of one sample in one block, in the bytes of a file that `owner` has in
    // memory: show(entry) gives the bytes of an entry.
    template <typename Show>
    [[nodiscard]] BlockRef show_entries(size_t sample, std::shared_ptr<const void> owner,
                                        std::span<const uint8_t> file, const Show& show) const {
        check_limits(sample);
        std::vector<PlacedField> fields;
        size_t from = file.size(), to = 0;
        for (const uint32_t number : choice(sample).numbers) {
            const std::span<const uint8_t> bytes = show(groups_[sample][number]);
            const auto at = static_cast<size_t>(bytes.data() - file.data());
            fields.push_back({at, bytes.size()});
            from = std::min(from, at);
            to = std::max(to, at + bytes.size());
        }
        for (PlacedField& field : fields) field.start -= from;
        const PlacedSample placed{key(sample), offset(sample), choice(sample).schema};
        return make_block({&placed, 1}, fields, origin_,
                          borrowed(std::move(owner), file.subspan(from, to - from)));
    }

    // Reads the wanted fields of samples into one block. `check(sample)` comes before memory is
    // taken for the sample. Then, if there is a field, `open()` returns what reads them all:
    // read(entry, out) fills `out`, which has the entry's size.
    template <typename Check, typename Open>
    [[nodiscard]] BlockRef read_entries(std::span<const size_t> samples, const Check& check,
                                        const Open& open) const {
        std::array<std::byte, 4096> stack;  // enough for most samples, and faster than the heap
        std::pmr::monotonic_buffer_resource memory(stack.data(), stack.size());
        std::pmr::vector<PlacedField> fields(&memory);
        std::pmr::vector<PlacedSample> placed(&memory);
        placed.reserve(samples.size());
        size_t total = 0;
        for (const size_t sample : samples) {
            check_limits(sample);
            check(sample);
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
        if (!fields.empty()) {
            auto reader = open();
            auto field = fields.begin();
            for (const size_t sample : samples)
                for (const uint32_t number : choice(sample).numbers) {
                    reader.read(groups_[sample][number],
                                {storage->data + field->start, field->size});
                    ++field;
                }
        }
        return make_block(placed, fields, origin_, std::move(storage));
    }

  private:
    static constexpr size_t alignment = 64;

    void check_limits(size_t sample) const {
        const uint64_t size = bytes(sample);
        const auto limit = [&](const char* option, uint64_t bound) {
            if (size > bound)
                throw Error(Fault{.code = SHF_E_LIMIT,
                                  .offset = has_places() ? offset(sample) : no_offset,
                                  .shard = {},
                                  .member = escape(directory_.name(first(sample))),
                                  .cause = "a sample of " + plural(size, "byte") +
                                           " is larger than " + option + "=" +
                                           std::to_string(bound),
                                  .help = std::string("raise ") + option});
        };
        limit("max_sample", context_.options.max_sample);
        limit("memory", context_.options.memory);
    }

    const DatasetContext& context_;
    const std::shared_ptr<const Origin> origin_;
    const Directory directory_;
    const EntryGroups groups_;
    const WantedFields wanted_;
    const ShardFile file_;
};

}  // namespace shf
