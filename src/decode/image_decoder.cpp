#include "decode/image_decoder.h"

#include "core/error.h"
#include "image/image_geometry.h"
#include "image/image_header.h"
#include "image/image_mode.h"
#include "image/image_pixels.h"
#include "image/image_scratch.h"
#include "image/jpeg.h"
#include "image/png.h"
#include "image/resample.h"
#include "image/webp.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace shf {

namespace {

using Mode = ImageOptions::Mode;

// Bytes, or the largest number where they are more.
uint64_t image_bytes(uint64_t width, uint64_t height, uint64_t pixel_size) {
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(width, height, &bytes) ||
        __builtin_mul_overflow(bytes, pixel_size, &bytes))
        return std::numeric_limits<uint64_t>::max();
    return bytes;
}

class ImageDecoder final : public Decoder {
  public:
    ImageDecoder(const ImageOptions& options, uint64_t max_decoded)
        : options_(options), mode_(traits_of(options.mode)), max_decoded_(max_decoded) {}

    [[nodiscard]] Measured measure(std::span<const uint8_t> field, uint64_t random) const override {
        const ImageHeader header = read_image_header(field, options_.orient);
        const ImageGeometry plan = plan_image(header, options_, random);
        check_limits(header, plan);
        return {.type = type_of(plan)};
    }

    void decode(std::span<const uint8_t> field, uint64_t random, const ArrayType& type,
                std::span<uint8_t> out, DecodeScratch& scratch) const override {
        const ImageHeader header = read_image_header(field, options_.orient);
        const ImageGeometry plan = plan_image(header, options_, random);
        check_limits(header, plan);
        if (type_of(plan) != type || out.size() != type.bytes())
            throw Error(SHF_E_INTERNAL, "an image is decoded into what was measured of another");
        if (!scratch.image) scratch.image = std::make_unique<ImageScratch>();
        const Trim trim{*scratch.image};
        if (goes_straight(header, plan)) {
            const Pixels whole{out.data(), plan.crop.width, plan.crop.height, mode_.channels,
                               header_depth(header)};
            decode_stored(field, header, 1, whole, *scratch.image);
        } else {
            decode_in_steps(field, header, plan, out, *scratch.image);
        }
        if (plan.flipped) flip_result(plan, out);
    }

  private:
    struct Trim {
        ImageScratch& scratch;
        ~Trim() { scratch.drop_large_pieces(); }
    };

    [[nodiscard]] ArrayType type_of(const ImageGeometry& plan) const {
        const int64_t height = plan.crop.height, width = plan.crop.width, c = mode_.channels;
        if (c == 1) return {mode_.dtype, 2, {height, width}};
        if (options_.channels_first) return {mode_.dtype, 3, {c, height, width}};
        return {mode_.dtype, 3, {height, width, c}};
    }

    // Of the pixels while they are worked on: 16 bits are kept where the mode has room for them.
    [[nodiscard]] uint32_t header_depth(const ImageHeader& header) const {
        return mode_.dtype == DType::u8 ? 8 : header.depth;
    }

    // Grey stays one channel as long as possible, and colour becomes grey as soon as it is there.
    [[nodiscard]] uint32_t stored_channels(const ImageHeader& header) const {
        if (mode_.channels == 4) return 4;
        return header.is_grey() ? 1 : 3;
    }

    void check_limits(const ImageHeader& header, const ImageGeometry& plan) const {
        const auto check = [this](uint64_t bytes, const std::string& what) {
            if (bytes > max_decoded_)
                throw Error(SHF_E_LIMIT,
                            what + " takes " + plural(bytes, "byte") +
                                ", more than max_decoded=" + std::to_string(max_decoded_),
                            "raise max_decoded if you trust the source");
        };
        const auto size = [](uint32_t width, uint32_t height) {
            return std::to_string(width) + "x" + std::to_string(height);
        };
        const uint64_t stored_pixel =
            std::max<uint64_t>(header.channels * (header.depth / 8),
                               stored_channels(header) * (header_depth(header) / 8));
        check(image_bytes(header.width, header.height, stored_pixel),
              "an image of " + size(header.width, header.height));
        check(header.kept,
              "a JPEG of " + size(header.width, header.height) + " that is progressive");
        check(image_bytes(plan.crop.width, plan.crop.height,
                          mode_.channels * traits_of(mode_.dtype).size),
              "a result of " + size(plan.crop.width, plan.crop.height));
        if (plan.is_resized())
            check(resample_memory(plan.source.width, plan.source.height, plan, stored_pixel),
                  "resizing from " + size(plan.source.width, plan.source.height) + " to " +
                      size(plan.resized_width, plan.resized_height));
    }

    // Whether the codec alone can write the result.
    [[nodiscard]] bool goes_straight(const ImageHeader& header, const ImageGeometry& plan) const {
        const bool same_numbers =
            mode_.dtype == DType::u8 || (mode_.dtype == DType::u16 && header.depth == 16);
        return same_numbers &&
               (mode_.channels == 1 ? header.is_grey() : !options_.channels_first) &&
               header.orientation == 1 && !plan.takes_part() && !plan.is_resized() &&
               !plan.is_cropped();
    }

    static void decode_stored(std::span<const uint8_t> field, const ImageHeader& header,
                              uint32_t reduction, const Pixels& to, ImageScratch& scratch) {
        switch (header.format) {
            case ImageFormat::jpeg: return decode_jpeg(field, header, reduction, to, scratch.jpeg);
            case ImageFormat::png: return decode_png(field, header, to);
            case ImageFormat::webp: return decode_webp(field, to);
        }
    }

    void decode_in_steps(std::span<const uint8_t> field, const ImageHeader& header,
                         const ImageGeometry& plan, std::span<uint8_t> out,
                         ImageScratch& scratch) const {
        uint32_t reduction = 1;
        if (header.format == ImageFormat::jpeg && plan.is_resized() && !plan.takes_part())
            reduction = header.swaps_sides()
                            ? jpeg_reduction(header, plan.resized_height, plan.resized_width)
                            : jpeg_reduction(header, plan.resized_width, plan.resized_height);
        Pixels pixels{nullptr, (header.width + reduction - 1) / reduction,
                      (header.height + reduction - 1) / reduction, stored_channels(header),
                      header_depth(header)};
        scratch.stored.hold(pixels);
        decode_stored(field, header, reduction, pixels, scratch);
        if (mode_.channels == 1 && pixels.channels != 1) make_grey(pixels);
        if (header.orientation != 1) {
            Pixels turned = pixels;
            if (header.swaps_sides()) std::swap(turned.width, turned.height);
            scratch.turned.hold(turned);
            orient(pixels, header.orientation, turned);
            pixels = turned;
        }
        if (plan.takes_part()) keep_part(pixels, plan.source);
        if (plan.source_flipped) flip(pixels);
        CropBox box = plan.crop;
        if (pixels.width != plan.resized_width || pixels.height != plan.resized_height) {
            const bool has_alpha = pixels.channels == 4 && header.format != ImageFormat::jpeg;
            Pixels part = pixels;
            part.width = plan.crop.width;
            part.height = plan.crop.height;
            const bool last_step = part.depth == traits_of(mode_.dtype).size * 8 &&
                                   part.channels == mode_.channels && mode_.dtype != DType::f32 &&
                                   (mode_.channels == 1 || !options_.channels_first);
            if (last_step)
                part.data = out.data();
            else
                scratch.resampled.hold(part);
            if (has_alpha) premultiply(pixels);
            resample(pixels, plan, part, scratch.resample);
            if (has_alpha) unpremultiply(part);
            if (last_step) return;
            pixels = part;
            box = {0, 0, part.width, part.height};
        }
        write_pixels(pixels, box, options_.mode, options_.channels_first, out);
    }

    void flip_result(const ImageGeometry& plan, std::span<uint8_t> out) const {
        Pixels result{out.data(), plan.crop.width, plan.crop.height, mode_.channels,
                      static_cast<uint32_t>(traits_of(mode_.dtype).size * 8)};
        if (options_.channels_first) {  // planes one below the other
            result.height *= result.channels;
            result.channels = 1;
        }
        flip(result);
    }

    const ImageOptions options_;
    const ModeTraits& mode_;
    const uint64_t max_decoded_;
};

}  // namespace

std::unique_ptr<Decoder> image_decoder(const ImageOptions& options, uint64_t max_decoded) {
    const auto needs = [](bool given, uint32_t side, const char* what) {
        if (given && side == 0)
            throw Error(SHF_E_USAGE, std::string(what) + " to 0 pixels", "give sides above 0");
    };
    const bool both = options.resize == ImageOptions::Resize::exact ||
                      options.resize == ImageOptions::Resize::fit;
    const bool crops = options.crop != ImageOptions::Crop::none;
    needs(options.resize != ImageOptions::Resize::none, options.width, "resize");
    needs(both, options.height, "resize");
    needs(crops, options.crop_width, "crop");
    needs(crops, options.crop_height, "crop");
    return std::make_unique<ImageDecoder>(options, max_decoded);
}

}  // namespace shf
