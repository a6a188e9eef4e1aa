// What becomes of the pixels of an image, wherever they come from: its steps, its colours, and the
// numbers that come out.
#pragma once

#include "core/array.h"
#include "image/image_geometry.h"
#include "image/image_header.h"
#include "image/image_mode.h"
#include "image/image_options.h"
#include "image/image_pixels.h"
#include "image/image_scratch.h"
#include "image/row_writer.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace shf {

// Bytes of so many items, or the largest number where they are more.
inline uint64_t bytes_of_all(uint64_t width, uint64_t height, uint64_t size) {
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(width, height, &bytes) ||
        __builtin_mul_overflow(bytes, size, &bytes))
        return std::numeric_limits<uint64_t>::max();
    return bytes;
}

// Where the pixels of one image come from: a file that is decoded, or a frame of a video.
class PixelSource {
  public:
    explicit PixelSource(bool reduces = false, bool transparent = false)
        : reduces(reduces), transparent(transparent) {}
    virtual ~PixelSource() = default;

    // The part `wanted` of the image, as it is stored and reduced, or more. `pixels` has channels
    // and depth already. Returns what it is. Throws Error: FORMAT, UNSUPPORTED, LIMIT.
    virtual CropBox part(uint32_t reduction, const CropBox& wanted, Pixels& pixels,
                         ImageScratch& scratch) const = 0;
    // All of it to memory that is there, unreduced. Throws as part().
    virtual void whole(const Pixels& to) const = 0;

    const bool reduces;      // it can be reduced while it is decoded
    const bool transparent;  // a fourth channel has more than opaque pixels
};

// Any number of threads, each with a scratch of its own.
class ImageSteps {
  public:
    // Throws Error(USAGE) for sides of 0.
    ImageSteps(const ImageOptions& options, uint64_t max_decoded);

    // The key of the choices for this view.
    [[nodiscard]] uint64_t choices(uint64_t random) const {
        return choices_of_view(options_, random);
    }
    // `random` is that key here and below.
    [[nodiscard]] ImageGeometry plan(const ImageHeader& header, uint64_t random) const {
        return plan_image(header, options_, random);
    }
    [[nodiscard]] ArrayType type_of(const ImageGeometry& plan) const;
    // `format` is what decodes it, for messages. Throws Error(LIMIT).
    void check_limits(const ImageHeader& header, const ImageGeometry& plan,
                      const char* format) const;
    // Writes the result, which has the size of type_of(plan). Throws what `source` throws, and
    // std::bad_alloc.
    void run(const PixelSource& source, const ImageHeader& header, const ImageGeometry& plan,
             uint64_t random, std::span<uint8_t> out, ImageScratch& scratch) const;

    [[nodiscard]] const ImageOptions& options() const { return options_; }

  private:
    struct Axes;

    [[nodiscard]] uint32_t header_depth(const ImageHeader& header) const;
    [[nodiscard]] uint32_t stored_channels(const ImageHeader& header) const;
    [[nodiscard]] bool goes_straight(const ImageHeader& header, const ImageGeometry& plan) const;
    [[nodiscard]] static Axes axes_of(const ImageGeometry& plan, uint32_t reduction);
    [[nodiscard]] uint32_t reduction_of(const PixelSource& source, const ImageGeometry& plan) const;
    void run_steps(const PixelSource& source, const ImageHeader& header, const ImageGeometry& plan,
                   uint64_t random, std::span<uint8_t> out, ImageScratch& scratch) const;
    void resample_colours(const Pixels& pixels, const Pixels& shape, const ImageGeometry& plan,
                          uint64_t random, std::span<uint8_t> out, ImageScratch& scratch) const;
    void write_placed(const Pixels& part, const ImageGeometry& placed, std::span<uint8_t> out,
                      ImageScratch& scratch) const;
    Pixels place_whole(const Pixels& part, ImageGeometry& plan, ImageScratch& scratch) const;

    const ImageOptions options_;
    const ModeTraits mode_;
    const SampleNumbers numbers_;
    const bool changes_colours_ =
        options_.colours != ImageOptions::Colours() || options_.augment != ImageOptions::Augment();
    const uint64_t max_decoded_;
};

}  // namespace shf
