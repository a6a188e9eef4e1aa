#include "format/tar_listing.h"

#include "core/options.h"

namespace shf {

TarListing::TarListing(Source& source, const Options& options, const Cancel& cancel, Stats& stats)
    : pool_(Pool::make(Options())),
      input_(source.open_sequential(0)),
      window_(std::make_unique<Window>(*input_, *pool_, cancel, client())),
      walker_(*window_, options, stats) {
    walker_.set_input_size(source.size());
}

TarListing::~TarListing() {
    window_.reset();
    pool_->close();
    pool_->drop();
}

}  // namespace shf
