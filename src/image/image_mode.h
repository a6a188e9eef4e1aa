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

// In the order of ImageOptions::Mode.
inline constexpr ModeTraits mode_traits[] = {
    {3, DType::u8},  {1, DType::u8},  {4, DType::u8},  {3, DType::u16},
    {1, DType::u16}, {3, DType::f32}, {1, DType::f32},
};

constexpr const ModeTraits& traits_of(ImageOptions::Mode mode) {
    return mode_traits[static_cast<size_t>(mode)];
}

}  // namespace shf
