#include "tar/tar_listing.h"

#include "core/options.h"

namespace shf {

TarListing::TarListing(Source& source, const Options& options, const Cancel& cancel, Stats& stats,
                       uint64_t offset)
    : TarListing(source.open_sequential(offset), &source, options, cancel, stats, offset) {}

TarListing::TarListing(std::unique_ptr<Sequential> input, const Source* source,
                       const Options& options, const Cancel& cancel, Stats& stats, uint64_t offset)
    : pool_(Pool::make(Options())),
      input_(std::move(input)),
      sizer_(options, false, size_t{64} * 1024),
      window_(*input_, {options, *pool_, cancel, stats}, sizer_),
      walker_(window_, options, stats) {
    if (source) walker_.set_source(*source, offset);
}

}  // namespace shf
