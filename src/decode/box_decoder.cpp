#include "decode/box_decoder.h"

#include "core/error.h"
#include "decode/box_json.h"
#include "image/image_geometry.h"
#include "image/image_header.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace shf {

namespace {

struct Box {
    double left, top, right, bottom;
};

std::string side_text(double number) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", number);
    return text;
}

std::string box_text(const JsonBox& box) {
    return "[" + side_text(box[0]) + ", " + side_text(box[1]) + ", " + side_text(box[2]) + ", " +
           side_text(box[3]) + "]";
}

Box corners_of(const JsonBox& box, BoxOptions::Format format) {
    switch (format) {
        case BoxOptions::Format::xyxy: break;
        case BoxOptions::Format::xywh: return {box[0], box[1], box[0] + box[2], box[1] + box[3]};
        case BoxOptions::Format::cxcywh:
            return {box[0] - box[2] / 2, box[1] - box[3] / 2, box[0] + box[2] / 2,
                    box[1] + box[3] / 2};
    }
    return {box[0], box[1], box[2], box[3]};
}

// One axis: of the image, resized, cropped and put into the result.
struct BoxAxis {
    double source, scale, crop, count, place;

    [[nodiscard]] double moved(double at) const {
        return std::clamp((at - source) * scale - crop, 0.0, count) + place;
    }
};

class BoxDecoder final : public Decoder {
  public:
    BoxDecoder(BoxOptions boxes, const ImageOptions& image, uint64_t max_decoded)
        : boxes_(std::move(boxes)), image_(image), max_decoded_(max_decoded) {}

    [[nodiscard]] Measured measure(std::span<const uint8_t> /*field*/,
                                   uint64_t /*random*/) const override {
        without_image();
    }
    void decode(std::span<const uint8_t> /*field*/, uint64_t /*random*/, const ArrayType& /*type*/,
                std::span<uint8_t> /*out*/, DecodeScratch& /*scratch*/) const override {
        without_image();
    }

    [[nodiscard]] Measured measure_beside(std::span<const uint8_t> image,
                                          std::span<const uint8_t> field,
                                          uint64_t random) const override {
        return {.type = type_of(placed_boxes(image, field, random).size()), .cheap = true};
    }

    void decode_beside(std::span<const uint8_t> image, std::span<const uint8_t> field,
                       uint64_t random, const ArrayType& type, std::span<uint8_t> out,
                       DecodeScratch& /*scratch*/) const override {
        const std::vector<Placed> boxes = placed_boxes(image, field, random);
        if (type_of(boxes.size()) != type || out.size() != type.bytes())
            throw Error(SHF_E_INTERNAL, "boxes are decoded into what was measured of others");
        uint8_t* to = out.data();
        for (const Placed& box : boxes) {
            const bool wants_boxes = boxes_.result == BoxOptions::Result::boxes;
            const void* const from = wants_boxes ? static_cast<const void*>(box.sides.data())
                                                 : static_cast<const void*>(&box.number);
            const size_t size = wants_boxes ? sizeof box.sides : sizeof box.number;
            std::memcpy(to, from, size);
            to += size;
        }
    }

  private:
    // One that is left, and its number in the field.
    struct Placed {
        int64_t number;
        std::array<float, 4> sides;  // left, top, right, bottom
    };

    [[noreturn]] static void without_image() {
        throw Error(SHF_E_INTERNAL, "boxes are decoded without their image");
    }

    [[nodiscard]] ArrayType type_of(size_t count) const { return box_type(boxes_, count); }

    [[nodiscard]] std::vector<Placed> placed_boxes(std::span<const uint8_t> image,
                                                   std::span<const uint8_t> field,
                                                   uint64_t random) const {
        const ImageHeader header = read_image_header(image, image_.orient);
        const ImageGeometry plan =
            flipped_last(plan_image(header, image_, choices_of_view(image_, random)));
        const std::vector<JsonBox> given =
            read_boxes(field, boxes_.path, max_decoded_ / sizeof(JsonBox));
        const BoxAxis x{static_cast<double>(plan.source.left),
                        static_cast<double>(plan.resized_width) / plan.source.width,
                        static_cast<double>(plan.crop.left), static_cast<double>(plan.crop.width),
                        static_cast<double>(plan.left)};
        const BoxAxis y{static_cast<double>(plan.source.top),
                        static_cast<double>(plan.resized_height) / plan.source.height,
                        static_cast<double>(plan.crop.top), static_cast<double>(plan.crop.height),
                        static_cast<double>(plan.top)};
        const double width = plan.result_width;
        std::vector<Placed> placed;
        for (size_t i = 0; i < given.size(); ++i) {
            const Box box = checked(given[i], i, plan);
            double left = x.moved(box.left), right = x.moved(box.right);
            if (plan.flipped) {
                std::swap(left, right);
                left = width - left;
                right = width - right;
            }
            const std::array sides{static_cast<float>(left), static_cast<float>(y.moved(box.top)),
                                   static_cast<float>(right),
                                   static_cast<float>(y.moved(box.bottom))};
            if (sides[2] - sides[0] >= 1 && sides[3] - sides[1] >= 1)
                placed.push_back({static_cast<int64_t>(i), sides});
        }
        return placed;
    }

    // In pixels of the image.
    [[nodiscard]] Box checked(const JsonBox& given, size_t number,
                              const ImageGeometry& plan) const {
        const double width = plan.width, height = plan.height;
        Box box = corners_of(given, boxes_.format);
        if (boxes_.relative) {
            box.left *= width;
            box.right *= width;
            box.top *= height;
            box.bottom *= height;
        }
        const auto refuse = [&](const std::string& why, const char* help) {
            throw Error(SHF_E_FORMAT,
                        "box " + std::to_string(number) + ", " + box_text(given) + ", " + why,
                        help);
        };
        // Also where a sum is infinite.
        if (!(box.right >= box.left && box.bottom >= box.top))
            refuse("ends before it begins",
                   "xywh and cxcywh are the other formats: json:boxes/xywh/of=jpg");
        if (box.right < 0 || box.bottom < 0 || box.left > width || box.top > height)
            refuse("lies beside its image of " + std::to_string(plan.width) + "x" +
                       std::to_string(plan.height),
                   boxes_.relative ? "relative boxes have numbers in 0..1"
                                   : "xywh and cxcywh are the other formats, and relative is for "
                                     "numbers in 0..1");
        // They would all be left out, and no word said.
        if (!boxes_.relative && box.right <= 1 && box.bottom <= 1 && box.right > box.left &&
            box.bottom > box.top && (width > 1 || height > 1))
            refuse("lies in the first pixel of its image", "relative is for numbers in 0..1");
        return box;
    }

    const BoxOptions boxes_;
    const ImageOptions image_;
    const uint64_t max_decoded_;
};

}  // namespace

ArrayType box_type(const BoxOptions& boxes, uint64_t count) {
    const auto rows = static_cast<int64_t>(count);
    if (boxes.result == BoxOptions::Result::kept) return {DType::i64, 1, {rows}};
    return {DType::f32, 2, {rows, 4}};
}

std::unique_ptr<Decoder> box_decoder(const BoxOptions& boxes, const ImageOptions& image,
                                     uint64_t max_decoded) {
    return std::make_unique<BoxDecoder>(boxes, image, max_decoded);
}

}  // namespace shf
