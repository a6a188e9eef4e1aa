#include "decode/image_decoder.h"

#include "core/error.h"
#include "decode/image_record.h"
#include "decode/image_steps.h"
#include "image/image_codecs.h"
#include "image/jpeg.h"

#include <string>

namespace shf {

namespace {

// The pixels of a file.
class FilePixels final : public PixelSource {
  public:
    FilePixels(std::span<const uint8_t> file, const ImageHeader& header)
        : PixelSource(header.format == ImageFormat::jpeg, header.format != ImageFormat::jpeg),
          file_(file),
          header_(header) {}

    CropBox part(uint32_t reduction, const CropBox& wanted, Pixels& pixels,
                 ImageScratch& scratch) const override {
        if (header_.format == ImageFormat::jpeg)
            return decode_jpeg_part(file_, header_, reduction, wanted, pixels, scratch.stored);
        pixels.width = header_.width;
        pixels.height = header_.height;
        scratch.stored.hold(pixels);
        codec_of(header_).decode(file_, header_, pixels);
        return {0, 0, header_.width, header_.height};
    }
    void whole(const Pixels& to) const override { codec_of(header_).decode(file_, header_, to); }

  private:
    const std::span<const uint8_t> file_;
    const ImageHeader& header_;
};

class ImageDecoder final : public Decoder {
  public:
    ImageDecoder(const ImageOptions& options, uint64_t max_decoded)
        : steps_(options, max_decoded) {}

    [[nodiscard]] Measured measure(std::span<const uint8_t> field, uint64_t random) const override {
        const ImageHeader header = header_of(field);
        return {.type = steps_.type_of(checked_plan(header, steps_.choices(random)))};
    }

    [[nodiscard]] std::string record(std::span<const uint8_t> field,
                                     uint64_t random) const override {
        const ImageHeader header = header_of(field);
        const uint64_t choices = steps_.choices(random);
        return image_record(steps_.options(), steps_.plan(header, choices), choices);
    }

    void decode(std::span<const uint8_t> field, uint64_t random, const ArrayType& type,
                std::span<uint8_t> out, DecodeScratch& scratch) const override {
        const ImageHeader header = header_of(field);
        const uint64_t choices = steps_.choices(random);
        const ImageGeometry plan = checked_plan(header, choices);
        if (steps_.type_of(plan) != type || out.size() != type.bytes())
            throw Error(SHF_E_INTERNAL, "an image is decoded into what was measured of another");
        if (!scratch.image) scratch.image = std::make_unique<ImageScratch>();
        const ImageScratch::Trim trim{*scratch.image};
        steps_.run(FilePixels(field, header), header, plan, choices, out, *scratch.image);
    }

  private:
    [[nodiscard]] ImageHeader header_of(std::span<const uint8_t> field) const {
        ImageHeader header = read_image_header(field, steps_.options().orient);
        if (steps_.options().mask) prepare_mask(header);
        return header;
    }

    // Labels stay the numbers that are stored, or the image is refused.
    void prepare_mask(ImageHeader& header) const {
        using Mode = ImageOptions::Mode;
        const Mode mode = steps_.options().mode;
        const bool is_grey = mode == Mode::l8 || mode == Mode::l16;
        if (is_grey && header.has_palette) {
            header.indexes = true;
            header.channels = 1;
        }
        if (is_grey && !header.is_grey())
            throw Error(SHF_E_UNSUPPORTED, "a mask in colours", "decode it as rgb8/mask");
        const uint32_t depth = mode == Mode::l16 || mode == Mode::rgb16 ? 16 : 8;
        if (header.depth != depth)
            throw Error(SHF_E_UNSUPPORTED,
                        "a mask of " + std::to_string(header.depth) +
                            " bits, and the column is of " + std::to_string(depth),
                        header.depth == 16 ? "decode it as l16/mask" : "decode it as l8/mask");
    }

    [[nodiscard]] ImageGeometry checked_plan(const ImageHeader& header, uint64_t choices) const {
        const ImageGeometry plan = steps_.plan(header, choices);
        steps_.check_limits(header, plan, codec_of(header).format);
        return plan;
    }

    const ImageSteps steps_;
};

}  // namespace

std::unique_ptr<Decoder> image_decoder(const ImageOptions& options, uint64_t max_decoded) {
    return std::make_unique<ImageDecoder>(options, max_decoded);
}

}  // namespace shf
