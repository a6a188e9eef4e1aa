// Where the samples of a shard start, as its index file says: so that reading can begin at any of
// them.
#pragma once

#include "core/shard_position.h"
#include "index/shard_index.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shf {

class SampleFilter;
class Source;
struct Options;

class SampleStarts {
  public:
    // Nothing when there is no index of this very shard, open as `source`, or a damaged one, and
    // when the filter must count the samples before.
    static std::optional<SampleStarts> find(const std::string& url, Source& source,
                                            const Options& options, const SampleFilter& filter);

    // Whether `start` is one of them.
    [[nodiscard]] bool fits(SampleStart start) const {
        return start.number == 0 ? start.offset == 0 : offset(start.number) == start.offset;
    }
    // Of sample `number`, as SampleStart counts; nothing when there are not so many.
    [[nodiscard]] std::optional<uint64_t> offset(uint64_t number) const;
    // How many bytes of the shard a sample takes. There must be so many.
    [[nodiscard]] uint64_t bytes(uint64_t number) const;

  private:
    SampleStarts(std::shared_ptr<const ShardIndex> index, const SampleFilter& filter);

    [[nodiscard]] size_t count() const { return all_ ? index_->samples() : counted_.size(); }
    [[nodiscard]] size_t in_index(uint64_t number) const {
        const auto at = static_cast<size_t>(number);
        return all_ ? at : counted_[at];
    }

    std::shared_ptr<const ShardIndex> index_;
    bool all_;                     // every sample of the index is counted, or
    std::vector<size_t> counted_;  // these
};

}  // namespace shf
