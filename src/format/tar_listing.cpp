#include "format/tar_listing.h"

#include "core/options.h"

#include <algorithm>

namespace shf {

TarListing::TarListing(Source& source, const Options& options, const Cancel& cancel, Stats& stats,
                       uint64_t offset)
    : pool_(Pool::make(Options())),
      input_(source.open_sequential(offset)),
      window_(*input_, *pool_, cancel, client()),
      walker_(window_, options, stats) {
    if (const auto size = source.size()) walker_.set_input_size(*size - std::min(*size, offset));
}

}  // namespace shf
