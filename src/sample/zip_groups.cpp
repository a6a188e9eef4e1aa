#include "sample/zip_groups.h"

#include "core/opening.h"
#include "core/options.h"
#include "core/stats.h"
#include "sample/grouper.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace shf {

class ZipGroups::Grouping final : private MemberFeed, private GrouperClient {
  public:
    Grouping(const ZipDirectory& directory, ZipGroups& groups)
        : directory_(directory), order_(directory.by_offset()), groups_(groups) {}

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
        if (next_ == order_.size()) return false;
        if (next_ % 65536 == 0) Opening::check();
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

    const ZipDirectory& directory_;
    const std::vector<uint32_t> order_;
    ZipGroups& groups_;
    size_t next_ = 0;
    uint32_t current_ = 0;
    std::vector<uint32_t> kept_;
};

ZipGroups::ZipGroups(const ZipDirectory& directory, const Options& options) {
    Grouping(directory, *this).run(options);
}

}  // namespace shf
