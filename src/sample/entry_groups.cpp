#include "sample/entry_groups.h"

#include "core/opening.h"
#include "core/options.h"
#include "core/stats.h"
#include "libarchive/libarchive_directory.h"
#include "sample/grouper.h"
#include "zip/zip_directory.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace shf {

class EntryGroups::Grouping final : private MemberFeed, private GrouperClient {
  public:
    Grouping(const EntryList& entries, EntryGroups& groups) : entries_(entries), groups_(groups) {}

    void run(const Options& options) {
        Stats stats;
        MemberFeed& feed = *this;
        GrouperClient& client = *this;
        Options unbounded = options;  // limits of size are for reading
        unbounded.memory = unbounded.max_member = unbounded.max_sample =
            std::numeric_limits<int64_t>::max();
        Grouper grouper(feed, client, unbounded, stats);
        grouper.run();
        if (grouper.samples() == 0 && !options.allow_empty)
            throw Error(SHF_E_FORMAT, "empty shard: there is no sample in it",
                        "allow_empty=true accepts shards without samples");
    }

  private:
    bool next(Member& member) override {
        if (next_ == entries_.count) return false;
        if (next_ % 65536 == 0) Opening::check();
        member = entries_.at(next_++, current_);
        // A size that cannot be is a fault of that entry alone, said when it is read.
        member.size = std::min<uint64_t>(member.size, std::numeric_limits<int32_t>::max());
        return true;
    }
    [[nodiscard]] bool counts_members() const override { return entries_.counted; }
    void skip(const Member& /*member*/) override {}
    // What is wrong with an entry is said when its sample is read.
    std::optional<Fault> take(const Member& /*member*/) override {
        kept_.push_back(current_);
        return std::nullopt;
    }
    std::span<const LooseField> kept() override { return {}; }
    void release() override { kept_.clear(); }

    void sample(const GroupedSample& sample) override {
        groups_.entries_.insert(groups_.entries_.end(), kept_.begin(), kept_.end());
        groups_.first_entry_.push_back(static_cast<uint32_t>(groups_.entries_.size()));
        groups_.schema_.push_back(groups_.schemas_.number(sample.schema));
    }
    void bad_sample(Fault fault, bool /*wanted*/) override { throw Error(std::move(fault)); }

    const EntryList& entries_;
    EntryGroups& groups_;
    size_t next_ = 0;
    uint32_t current_ = 0;
    std::vector<uint32_t> kept_;
};

EntryGroups::EntryGroups(const EntryList& entries, const Options& options) {
    Grouping(entries, *this).run(options);
}

EntryGroups entry_groups(const ZipDirectory& directory, const Options& options) {
    const std::vector<uint32_t> order = directory.by_offset();
    const auto at = [&](size_t i, uint32_t& index) -> Member {
        index = order[i];
        const ZipEntry& entry = directory.entry(index);
        if (entry.fault == ZipFault::directory_data) throw directory.fault_of(index);
        return {.kind = entry.kind,
                .name = directory.name(index),
                .header_offset = entry.offset,
                .data_offset = entry.offset,
                .size = entry.size};
    };
    return {{.count = order.size(), .at = at, .counted = false}, options};
}

EntryGroups entry_groups(const LibarchiveDirectory& directory, const Options& options) {
    const auto at = [&](size_t i, uint32_t& index) -> Member {
        index = static_cast<uint32_t>(i);
        const LibarchiveEntry& entry = directory.entry(i);
        return {.kind = entry.kind,
                .name = directory.name(i),
                .header_offset = i,
                .data_offset = i,
                .size = entry.size};
    };
    return {{.count = directory.size(), .at = at, .counted = true}, options};
}

}  // namespace shf
