// Decompressed bytes that no reader may see yet.
#pragma once

#include "codec/codec.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

namespace shf {

// Bytes go in behind and come out in front once they are released, in pieces of one size that are
// used again.
class HeldOutput {
  public:
    static constexpr size_t piece = size_t{64} << 10;

    // Room for the next bytes, up to the end of a piece; never empty.
    std::span<uint8_t> room() {
        const size_t used = end_ % piece;
        if (end_ / piece == pieces_.size())
            pieces_.push_back(std::make_unique_for_overwrite<uint8_t[]>(piece));
        return {pieces_[end_ / piece].get() + used, piece - used};
    }
    // The first `size` bytes of room() are filled.
    void add(size_t size) { end_ += size; }
    // Bytes that went in since the last release().
    [[nodiscard]] size_t held() const { return end_ - released_; }

    // Whether take() has something.
    [[nodiscard]] bool has_released() const { return begin_ < released_; }

    void release() { released_ = end_; }

    // Moves released bytes into `out` and returns how many.
    size_t take(std::span<uint8_t> out) {
        size_t count = 0;
        while (count < out.size() && begin_ < released_) {
            const size_t used = begin_ % piece;
            const size_t size = std::min({out.size() - count, piece - used, released_ - begin_});
            std::memcpy(out.data() + count, pieces_[begin_ / piece].get() + used, size);
            begin_ += size;
            count += size;
        }
        if (begin_ == end_) begin_ = released_ = end_ = 0;
        return count;
    }

    // Gives the memory back. Does nothing unless it is empty.
    void shrink() {
        if (end_ == 0) pieces_.clear();
    }

  private:
    std::vector<std::unique_ptr<uint8_t[]>> pieces_;
    size_t begin_ = 0, released_ = 0, end_ = 0;  // from the start of the first piece
};

}  // namespace shf
