#include "decode/image_steps.h"

#include "core/error.h"
#include "image/image_augment.h"
#include "image/image_blur.h"
#include "image/image_colours.h"
#include "image/jpeg.h"
#include "image/resample.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace shf {

struct ImageSteps::Axes {
    FilterAxis columns, rows;
    uint32_t left = 0, top = 0;  // where they begin in the image, reduced
};

namespace {

// Transparent pixels must not bleed.
void resample_alpha(const Pixels& pixels, Pixels& shape, RowWriter& writer, ImageScratch& scratch) {
    struct Rows final : RowSink {
        Rows(const Pixels& to, RowWriter& writer) : line(to), writer(writer) { line.height = 1; }
        uint8_t* row(uint32_t y) override { return line.data = writer.row(y); }
        void done(uint32_t y) override {
            unpremultiply(line);
            writer.done(y);
        }
        Pixels line;
        RowWriter& writer;
    } rows(shape, writer);
    premultiply(pixels);
    resample(pixels, scratch.resample, rows);
}

// Sides of 0, which the words of the option do not give.
void check_sides(const ImageOptions& options) {
    const auto needs = [](bool given, uint32_t side, const char* what) {
        if (given && side == 0)
            throw Error(SHF_E_USAGE, std::string(what) + " to 0 pixels", "give sides above 0");
    };
    const bool both = options.resize == ImageOptions::Resize::exact ||
                      options.resize == ImageOptions::Resize::fit;
    const bool crops =
        options.crop == ImageOptions::Crop::centre || options.crop == ImageOptions::Crop::random;
    needs(options.resize != ImageOptions::Resize::none, options.width, "resize");
    needs(both, options.height, "resize");
    needs(crops, options.crop_width, "crop");
    needs(crops, options.crop_height, "crop");
}

}  // namespace

ImageSteps::ImageSteps(const ImageOptions& options, uint64_t max_decoded)
    : options_(options), mode_(traits_of(options)), numbers_(options), max_decoded_(max_decoded) {
    check_sides(options);
}

ArrayType ImageSteps::type_of(const ImageGeometry& plan) const {
    const int64_t height = plan.result_height, width = plan.result_width, c = mode_.channels;
    if (c == 1) return {mode_.dtype, 2, {height, width}};
    if (options_.channels_first) return {mode_.dtype, 3, {c, height, width}};
    return {mode_.dtype, 3, {height, width, c}};
}

// Of the pixels while they are worked on: 16 bits are kept where the mode has room for them.
uint32_t ImageSteps::header_depth(const ImageHeader& header) const {
    return mode_.dtype == DType::u8 || (changes_colours_ && !options_.mask) ? 8 : header.depth;
}

// Grey stays one channel as long as possible, and colour becomes grey as soon as it is there.
uint32_t ImageSteps::stored_channels(const ImageHeader& header) const {
    if (mode_.channels == 4) return 4;
    return header.is_grey() ? 1 : 3;
}

void ImageSteps::check_limits(const ImageHeader& header, const ImageGeometry& plan,
                              const char* format) const {
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
    const uint64_t stored_pixel = std::max<uint64_t>(
        header.channels * (header.depth / 8), stored_channels(header) * (header_depth(header) / 8));
    check(bytes_of_all(header.width, header.height, stored_pixel),
          "an image of " + size(header.width, header.height));
    check(header.kept,
          std::string("decoding ") + format + " of " + size(header.width, header.height));
    check(bytes_of_all(plan.result_width, plan.result_height,
                       mode_.channels * traits_of(mode_.dtype).size),
          "a result of " + size(plan.result_width, plan.result_height));
    const Axes axes = axes_of(plan, 1);
    if (plan.is_resized())
        check(resample_memory(axes.columns, axes.rows, options_.filter, stored_pixel),
              "resizing from " + size(plan.source.width, plan.source.height) + " to " +
                  size(plan.resized_width, plan.resized_height));
    if (options_.colours.blur > 0)
        check(blur_memory(plan.result_width, plan.result_height, 3, options_.colours.kernel),
              "blurring " + size(plan.result_width, plan.result_height));
}

// Whether the codec alone can write the result.
bool ImageSteps::goes_straight(const ImageHeader& header, const ImageGeometry& plan) const {
    const bool same_numbers =
        mode_.dtype == DType::u8 || (mode_.dtype == DType::u16 && header.depth == 16);
    return same_numbers && (mode_.channels == 1 ? header.is_grey() : !options_.channels_first) &&
           header.orientation == 1 && !plan.takes_part() && !plan.is_resized() &&
           !plan.is_cropped() && !plan.is_padded() && !changes_colours_;
}

// What is resized, in an image that was reduced. A border of the source may lie in the middle
// of a reduced pixel, but those of the image are borders.
ImageSteps::Axes ImageSteps::axes_of(const ImageGeometry& plan, uint32_t reduction) {
    Axes axes;
    const auto fill = [&](FilterAxis& axis, uint32_t& begin, uint32_t whole, uint32_t first,
                          uint32_t size) {
        const uint32_t end = first + size;
        begin = first / reduction;
        axis.limit = (end + reduction - 1) / reduction - begin;
        axis.start = static_cast<double>(first % reduction) / reduction;
        axis.size = static_cast<double>(size) / reduction;
        if (end == whole) axis.size = axis.limit - axis.start;
    };
    const CropBox& source = plan.source;
    const uint32_t left =
        plan.source_flipped ? plan.width - source.left - source.width : source.left;
    fill(axes.columns, axes.left, plan.width, left, source.width);
    fill(axes.rows, axes.top, plan.height, source.top, source.height);
    axes.columns.resized = plan.resized_width;
    axes.columns.first = plan.crop.left;
    axes.columns.count = plan.crop.width;
    axes.rows.resized = plan.resized_height;
    axes.rows.first = plan.crop.top;
    axes.rows.count = plan.crop.height;
    return axes;
}

uint32_t ImageSteps::reduction_of(const PixelSource& source, const ImageGeometry& plan) const {
    // A crop that has a size and a place is exactly that.
    const bool may_reduce = !plan.takes_part() || options_.crop == ImageOptions::Crop::area;
    if (!source.reduces || !plan.is_resized() || !may_reduce || options_.exact ||
        options_.filter == ImageOptions::Filter::nearest)
        return 1;
    return jpeg_reduction(plan.source.width, plan.source.height, plan.resized_width,
                          plan.resized_height);
}

void ImageSteps::run(const PixelSource& source, const ImageHeader& header,
                     const ImageGeometry& plan, uint64_t random, std::span<uint8_t> out,
                     ImageScratch& scratch) const {
    if (!goes_straight(header, plan)) return run_steps(source, header, plan, random, out, scratch);
    const Pixels whole{out.data(), plan.crop.width, plan.crop.height, mode_.channels,
                       header_depth(header)};
    source.whole(whole);
    if (plan.flipped) flip(whole);
}

void ImageSteps::run_steps(const PixelSource& source, const ImageHeader& header,
                           const ImageGeometry& plan, uint64_t random, std::span<uint8_t> out,
                           ImageScratch& scratch) const {
    const uint32_t reduction = reduction_of(source, plan);
    const Axes axes = axes_of(plan, reduction);
    const auto reduced = [reduction](uint32_t side) { return (side + reduction - 1) / reduction; };
    const uint32_t width = reduced(plan.width), height = reduced(plan.height);
    Pixels pixels{nullptr, 0, 0, stored_channels(header), header_depth(header)};
    if (plan.crop.width == 0 || plan.crop.height == 0) {  // nothing but what is padded
        return RowWriter(options_, numbers_, plan, pixels, scratch.line, out).pad();
    }
    plan_resample(axes.columns, axes.rows, options_.filter, pixels.depth, scratch.resample);
    FilterTable &columns = scratch.resample.columns, &rows = scratch.resample.rows;
    CropBox part{axes.left + columns.begin(), axes.top + rows.begin(),
                 columns.end() - columns.begin(), rows.end() - rows.begin()};
    if (plan.source_flipped) part.left = width - part.left - part.width;
    part = source.part(reduction, part_before_turn(part, header.orientation, width, height), pixels,
                       scratch);
    if (mode_.channels == 1 && pixels.channels != 1) make_grey(pixels);
    if (header.orientation != 1) {
        part = turned_part(part, header.orientation, reduced(header.width), reduced(header.height));
        Pixels turned = pixels;
        if (header.swaps_sides()) std::swap(turned.width, turned.height);
        scratch.turned.hold(turned);
        orient(pixels, header.orientation, turned);
        pixels = turned;
    }
    if (plan.source_flipped) {
        flip(pixels);
        part.left = width - part.left - part.width;
    }
    columns.move(int64_t{axes.left} - part.left);
    rows.move(int64_t{axes.top} - part.top);
    Pixels shape = pixels;
    shape.width = plan.crop.width;
    shape.height = plan.crop.height;
    if (changes_colours_) return resample_colours(pixels, shape, plan, random, out, scratch);
    RowWriter writer(options_, numbers_, plan, shape, scratch.line, out);
    writer.pad();
    if (pixels.channels == 4 && source.transparent && plan.is_resized())
        return resample_alpha(pixels, shape, writer, scratch);
    resample(pixels, scratch.resample, writer);
}

// What is made of the colours of a whole image.
void ImageSteps::resample_colours(const Pixels& pixels, const Pixels& shape,
                                  const ImageGeometry& plan, uint64_t random,
                                  std::span<uint8_t> out, ImageScratch& scratch) const {
    Pixels part = shape;
    scratch.resampled.hold(part);
    PixelRows rows(part);
    resample(pixels, scratch.resample, rows);
    ImageGeometry placed = plan;
    if (options_.mask) {
        part = place_whole(part, placed, scratch);
        augment_mask(part, draw_augment(options_.augment, part.width, part.height, random),
                     options_.fill, plan.is_padded() ? scratch.resampled : scratch.stored);
        return write_placed(part, placed, out, scratch);
    }
    if (part.channels == 1) {
        Pixels coloured = part;
        coloured.channels = 3;
        scratch.turned.hold(coloured);
        make_coloured(part, coloured);
        part = coloured;
    }
    PixelBuffer* spare = &scratch.stored;
    if (options_.augment.set != ImageOptions::Augment::Set::none) {
        part = place_whole(part, placed, scratch);
        if (plan.is_padded()) spare = &scratch.resampled;
        augment(part, draw_augment(options_.augment, part.width, part.height, random),
                options_.augment.bilinear, options_.fill, *spare);
    }
    part = change_colours(part, draw_colours(options_.colours, random), options_.colours.kernel,
                          *spare, scratch.resample);
    if (mode_.channels == 1) make_grey(part);
    write_placed(part, placed, out, scratch);
}

// The pixels of an image that is there already.
void ImageSteps::write_placed(const Pixels& part, const ImageGeometry& placed,
                              std::span<uint8_t> out, ImageScratch& scratch) const {
    RowWriter writer(options_, numbers_, placed, part, scratch.line, out);
    writer.pad();
    for (uint32_t y = 0; y < part.height; ++y) {
        std::memcpy(writer.row(y), part.row(y), part.stride());
        writer.done(y);
    }
}

// The image as it comes out, flipped and with what is padded. `plan` becomes that of an image
// which is there already.
Pixels ImageSteps::place_whole(const Pixels& part, ImageGeometry& plan,
                               ImageScratch& scratch) const {
    if (plan.flipped) {
        flip(part);
        plan.left = plan.result_width - plan.left - part.width;
        plan.flipped = false;
    }
    if (!plan.is_padded()) return part;
    Pixels whole = part;
    whole.width = plan.result_width;
    whole.height = plan.result_height;
    scratch.stored.hold(whole);
    std::memset(whole.data, options_.fill, whole.stride() * whole.height);
    for (uint32_t y = 0; y < part.height; ++y)
        std::memcpy(whole.row(y + size_t{plan.top}) + plan.left * whole.pixel_size(), part.row(y),
                    part.stride());
    plan.crop = {0, 0, whole.width, whole.height};
    plan.left = plan.top = 0;
    return whole;
}

}  // namespace shf
