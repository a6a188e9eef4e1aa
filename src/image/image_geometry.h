// Where the pixels of an image go: orient, resize, crop, pad and flip as sizes and places.
#pragma once

#include "image/image_header.h"
#include "image/image_options.h"
#include "image/image_pixels.h"

#include <cstdint>

namespace shf {

struct ImageGeometry {
    uint32_t width = 0, height = 0;                  // after orient
    CropBox source;                                  // what is resized: all, or a crop before that
    uint32_t resized_width = 0, resized_height = 0;  // of the source, before the crop after that
    CropBox crop;                                    // what is left of the resized image
    uint32_t result_width = 0, result_height = 0;    // with what is padded
    uint32_t left = 0, top = 0;                      // where the crop lies in the result
    bool flipped = false;                            // the result, at the end
    bool source_flipped = false;                     // before the source is resized

    [[nodiscard]] bool takes_part() const {
        return source.width != width || source.height != height;
    }
    [[nodiscard]] bool is_resized() const {
        return resized_width != source.width || resized_height != source.height;
    }
    [[nodiscard]] bool is_cropped() const {
        return crop.width != resized_width || crop.height != resized_height;
    }
    [[nodiscard]] bool is_padded() const {
        return crop.width != result_width || crop.height != result_height;
    }
};

// `shorter` and `fit` keep the shape: the other side is rounded down, to at least 1, as Resize of
// torchvision does; a centred crop lies where CenterCrop has it, and one of random area is drawn as
// RandomResizedCrop does. The steps come in the order of the options; a flip that comes before a
// crop is the mirrored crop with a flip after it. Crops and flips at random depend on `random` and
// the size alone, so that an image and its mask agree.
// Throws Error: FORMAT for an image smaller than its crop, LIMIT for a side above 2^31 - 1.
ImageGeometry plan_image(const ImageHeader& header, const ImageOptions& options, uint64_t random);

// The same with the steps crop, resize, crop, pad and flip, in this order: what comes after a flip
// before resizing is mirrored.
ImageGeometry flipped_last(ImageGeometry plan);

// The key of the choices for the view of the options, of that of the sample.
uint64_t choices_of_view(const ImageOptions& options, uint64_t random);

}  // namespace shf
