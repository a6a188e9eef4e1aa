// What the modes of images are made of.
#pragma once

#include "core/array.h"
#include "image/image_options.h"

#include <cstddef>
#include <cstdint>

namespace shf {

struct ModeTraits {
    uint32_t channels;
    DType dtype;
};

constexpr ModeTraits traits_of(const ImageOptions& options) {
    // In the order of ImageOptions::Mode and Precision.
    constexpr ModeTraits modes[] = {
        {3, DType::u8},  {1, DType::u8},  {4, DType::u8},  {3, DType::u16},
        {1, DType::u16}, {3, DType::f32}, {1, DType::f32},
    };
    constexpr DType precisions[] = {DType::f32, DType::f16, DType::bf16};
    ModeTraits traits = modes[static_cast<size_t>(options.mode)];
    if (traits.dtype == DType::f32)
        traits.dtype = precisions[static_cast<size_t>(options.precision)];
    return traits;
}

}  // namespace shf
