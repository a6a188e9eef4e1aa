// Gaussian blur of images of 8 bits, as transforms v2 of torchvision has it.
#pragma once

#include "image/image_pixels.h"
#include "image/resample.h"

#include <cstdint>

namespace shf {

// `to`, of the same size, becomes `from` as GaussianBlur(kernel, sigma) makes it, within one level:
// what is beyond a border is mirrored. `kernel` is odd, `sigma` above 0. 16 bytes after the last
// row of `from` must be readable.
void blur(const Pixels& from, const Pixels& to, uint32_t kernel, double sigma,
          ResampleScratch& scratch);

// The bytes that this takes beside the two images, at most; LIMIT is decided by them.
uint64_t blur_memory(uint32_t width, uint32_t height, uint32_t channels, uint32_t kernel);

}  // namespace shf
