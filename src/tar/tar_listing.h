// The members of a tar one after another: their data is read in pieces, or skipped.
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
    // Of `input`, which starts at `offset` of the source: a filter, for example. `source` is NULL
    // when the input does not have its bytes as they are.
    TarListing(std::unique_ptr<Sequential> input, const Source* source, const Options& options,
               const Cancel& cancel, Stats& stats, uint64_t offset = 0);
    TarListing(const TarListing&) = delete;
    TarListing& operator=(const TarListing&) = delete;

    // As TarWalker; what is left of the data of each member must be passed with skip().
    bool next(Member& member) { return walker_.next(member); }
    bool resync() { return walker_.resync(); }
    [[nodiscard]] uint64_t damaged_from() const { return walker_.damaged_from(); }
    void skip(const Member& member) { walker_.skip_data(member); }
    size_t read(const Member& member, std::span<uint8_t> out) {
        return walker_.read_data(member, out);
    }
    void keep_metadata(TarMetadata& metadata) { walker_.keep_metadata(metadata); }
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
