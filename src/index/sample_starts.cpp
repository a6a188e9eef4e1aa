#include "index/sample_starts.h"

#include "index/index_store.h"
#include "sample/sample_filter.h"

#include <utility>

namespace shf {

std::optional<SampleStarts> SampleStarts::find(const std::string& url, Source& source,
                                               const Options& options, const SampleFilter& filter) {
    if (filter.counts()) return std::nullopt;
    auto index = find_index(url, source, options);
    if (!index) return std::nullopt;
    return SampleStarts(std::move(index), filter);
}

SampleStarts::SampleStarts(std::shared_ptr<const ShardIndex> index, const SampleFilter& filter)
    : index_(std::move(index)), all_(filter.all()) {
    for (size_t i = 0; !all_ && i < index_->samples(); ++i)
        if (filter.wants(i, std::string(index_->key(i)), *index_->schema(i))) counted_.push_back(i);
}

std::optional<uint64_t> SampleStarts::offset(uint64_t number) const {
    if (number >= count()) return std::nullopt;
    return index_->header(in_index(number));
}

uint64_t SampleStarts::bytes(uint64_t number) const {
    const size_t sample = in_index(number);
    const uint64_t end =
        sample + 1 < index_->samples() ? index_->header(sample + 1) : index_->end();
    return end - index_->header(sample);
}

}  // namespace shf
