// Resampling: bilinear with antialiasing, as Image.resize(BILINEAR) of Pillow and Resize of
// torchvision have it. The filter is a triangle whose width grows with the reduction; rows first,
// then columns, rounded to the image's bits in between.
#pragma once

#include "image/image_geometry.h"
#include "image/image_pixels.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shf {

// For each of a range of places in the result, which samples of one row or column of the image it
// is made of, and their weights.
struct FilterTable {
    struct Taps {
        uint32_t first, count;
    };
    std::vector<Taps> taps;
    // `most` for each place, an even number of them; what is not used is 0.
    std::vector<int32_t> weights;  // for 8 bit: in fixed point
    std::vector<int32_t> pairs;    // the same, two by two as the fast kernels take them
    std::vector<float> precise;    // for 16 bit
    size_t most = 0;
    bool is_copy = false;  // each place is one sample, the first one is taps[0].first
};

// What one thread keeps between images.
struct ResampleScratch {
    FilterTable columns, rows;
    std::vector<uint8_t> lines;  // rows of the image after the first pass, in turn
};

// The bytes that resampling takes beside the two images; LIMIT is decided by them.
uint64_t resample_memory(uint32_t width, uint32_t height, const ImageGeometry& plan,
                         size_t pixel_size);

// Writes the part `plan.crop` of `from`, resized to plan.resized_width x plan.resized_height, to
// `to`, which has the size of the crop and the channels and depth of `from`. 16 bytes after the
// last row of `from` must be readable.
void resample(const Pixels& from, const ImageGeometry& plan, const Pixels& to,
              ResampleScratch& scratch);

}  // namespace shf
