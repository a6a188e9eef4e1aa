// The one thing of EXIF that changes pixels: how the camera was held.
#pragma once

#include <cstdint>
#include <span>

namespace shf {

// The tag Orientation (CIPA DC-008 section 4.6.4) of the first IFD: 1 as stored, 2 to 8 mirrored
// and turned. `exif` is a TIFF structure, with or without "Exif\0\0" before it. 1 for what is
// damaged or says nothing: other readers show such images as they are stored, too.
uint32_t exif_orientation(std::span<const uint8_t> exif) noexcept;

}  // namespace shf
