// What one decoding thread keeps between images.
#pragma once

#include "image/image_pixels.h"
#include "image/resample.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace shf {

// Memory for pixels that are not yet the result; used again, and not cleared.
class PixelBuffer {
  public:
    // Sets the data of `pixels`, whose sizes are there. Readable for 16 bytes more.
    void hold(Pixels& pixels);
    [[nodiscard]] size_t size() const { return size_; }
    void clear() noexcept;

  private:
    std::unique_ptr<uint8_t[]> memory_;
    size_t size_ = 0;
};

struct ImageScratch {
    // What is kept of each piece of memory; the memory of one large image must not stay.
    static constexpr size_t most_kept = size_t{64} << 20;

    PixelBuffer stored, turned, resampled;
    ResampleScratch resample;
    std::vector<uint8_t> line;

    void drop_large_pieces() noexcept;

    struct Trim {
        ImageScratch& scratch;
        ~Trim() { scratch.drop_large_pieces(); }
    };
};

}  // namespace shf
