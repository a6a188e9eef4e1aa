// Sounds at another rate, through libsoxr.
#pragma once

#include <cstdint>
#include <span>

namespace shf {

// Resamples the frames of `in` in the quality SOXR_HQ, which the Python packages soxr and librosa
// have by default. `out` has as many as resampled_frames() says. Throws Error(UNSUPPORTED) without
// libsoxr, and std::bad_alloc.
void resample_audio(std::span<const float> in, uint32_t channels, uint32_t from, uint32_t to,
                    std::span<float> out);

}  // namespace shf
