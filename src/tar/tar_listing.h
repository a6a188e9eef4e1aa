// The members of a plain tar without their data: long data is skipped, not read.
#pragma once

#include "tar/tar.h"

#include <memory>

namespace shf {

class TarListing {
  public:
    // All references must outlive the listing. Starts at `offset`, where a header must be; the
    // offsets of members count from there.
    TarListing(Source& source, const Options& options, const Cancel& cancel, Stats& stats,
               uint64_t offset = 0);
    TarListing(const TarListing&) = delete;
    TarListing& operator=(const TarListing&) = delete;

    // As TarWalker; the data of each member must be passed with skip().
    bool next(Member& member) { return walker_.next(member); }
    void skip(const Member& member) { walker_.skip_data(member); }
    // Called once after next() returned false: proves that the file is still the one that was
    // opened.
    void finish() { input_->finish(); }

  private:
    struct Drop {
        void operator()(Pool* pool) const {
            pool->close();
            pool->drop();
        }
    };
    const std::unique_ptr<Pool, Drop> pool_;
    const std::unique_ptr<Sequential> input_;
    SlabSizer sizer_;
    Window window_;
    TarWalker walker_;
};

}  // namespace shf
