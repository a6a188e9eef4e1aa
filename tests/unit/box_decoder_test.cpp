// Boxes in JSON: where they are found, what is no box, and where they come to lie.
#include "decode/box_decoder.h"

#include "batch/decode_spec.h"
#include "core/error.h"
#include "decode/box_json.h"
#include "decode/image_decoder.h"
#include "image_files.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string_view>

namespace shf::test {
namespace {

std::span<const uint8_t> bytes_of(std::string_view text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

using Boxes = std::vector<JsonBox>;

Boxes read(std::string_view json, const std::vector<std::string>& path = {}, uint64_t most = 1000) {
    return read_boxes(bytes_of(json), path, most);
}

std::string fault(std::string_view json, const std::vector<std::string>& path = {},
                  uint64_t most = 1000) {
    try {
        read(json, path, most);
        return "accepted";
    } catch (const Error& error) {
        EXPECT_TRUE(error.code() == SHF_E_FORMAT || error.code() == SHF_E_LIMIT);
        return error.what();
    }
}

bool says(const std::string& message, std::string_view words) {
    return message.find(words) != std::string::npos;
}

TEST(BoxJson, a_list_at_the_end_of_a_path) {
    const Boxes both = {{1, 2, 3.5, 4}, {-5, 6, 7, 8e2}};
    EXPECT_EQ(read("[[1, 2, 3.5, 4], [-5, 6, 7, 8e2]]"), both);
    EXPECT_EQ(read(R"({"x": [[9]], "b": [[1, 2, 3.5, 4], [-5, 6, 7, 8e2]], "y": {"b": 4}})", {"b"}),
              both);
    EXPECT_EQ(read(R"({"o": {"id": [1, 2], "bbox": [[1,2,3.5,4],[-5,6,7,8e2]]}})", {"o", "bbox"}),
              both);
    EXPECT_EQ(read("[]"), Boxes());
    EXPECT_EQ(read(R"({"o": {"bbox": []}})", {"o", "bbox"}), Boxes());
}

TEST(BoxJson, a_box_in_each_element_of_a_list) {
    const Boxes both = {{1, 2, 3, 4}, {5, 6, 7, 8}};
    EXPECT_EQ(read(R"({"a": [{"bbox": [1,2,3,4], "id": 7}, {"id": 8, "bbox": [5,6,7,8]}]})",
                   {"a", "bbox"}),
              both);
    EXPECT_EQ(read(R"([{"bbox": [1,2,3,4]}, {"bbox": [5,6,7,8]}])", {"bbox"}), both);
    EXPECT_EQ(read(R"([{"at": {"box": [1,2,3,4]}}, {"at": {"box": [5,6,7,8]}}])", {"at", "box"}),
              both);
    EXPECT_EQ(read(R"({"a": []})", {"a", "bbox"}), Boxes());
}

// What lies beside the path may be anything, as deep as it likes.
TEST(BoxJson, nothing_else_is_kept) {
    const std::string deep(100000, '['), end(100000, ']');
    EXPECT_EQ(read(R"({"x": )" + deep + end + R"(, "b": [[1,2,3,4]]})", {"b"}),
              (Boxes{{1, 2, 3, 4}}));
    EXPECT_TRUE(says(fault(deep + end, {"b"}), "more than 64"));
    EXPECT_TRUE(says(fault(deep + end), "box 0 has a list"));
}

TEST(BoxJson, what_is_no_box) {
    EXPECT_TRUE(says(fault("[[1,2,3,4], 5]"), "box 1 is a number, and no list"));
    EXPECT_TRUE(says(fault("[[1,2,3,4], {}]"), "box 1 is an object, and no list"));
    EXPECT_TRUE(says(fault("[[1,2,3]]"), "box 0 is a list of 3 numbers"));
    EXPECT_TRUE(says(fault("[[1,2,3,4,5,6]]"), "box 0 is a list of 6 numbers"));
    EXPECT_TRUE(says(fault("[[1,2,null,4]]"), "box 0 has null in the place of a number"));
    EXPECT_TRUE(says(fault("[[1,2,\"3\",4]]"), "box 0 has a text in the place of a number"));
    EXPECT_TRUE(says(fault("[[1,2,[3],4]]"), "box 0 has a list in the place of a number"));
    EXPECT_TRUE(says(fault("[1,2,3,4]"), "box 0 is a number, and no list"));
    EXPECT_TRUE(says(fault("{}"), "where boxes should be is an object"));
    EXPECT_TRUE(says(fault(R"({"b": "none"})", {"b"}), "where boxes should be is a text"));
    EXPECT_TRUE(says(fault(R"({"b": null})", {"b"}), "where boxes should be is null"));
    EXPECT_TRUE(says(fault(R"({"a": [{"b": [[1,2,3,4]]}]})", {"a", "b"}), "in the place of"));
}

TEST(BoxJson, what_has_no_boxes) {
    EXPECT_TRUE(says(fault("{}", {"a"}), "an object without \"a\""));
    EXPECT_TRUE(says(fault(R"({"a": {"c": 1}})", {"a", "b"}), "an object without \"b\""));
    EXPECT_TRUE(says(fault(R"({"a": 1})", {"a", "b"}), "a number where \"b\" should be"));
    EXPECT_TRUE(says(fault(R"([{"b": [1,2,3,4]}, {}])", {"b"}), "an object without \"b\""));
    EXPECT_TRUE(says(fault(R"([{"b": [1,2,3,4]}, true])", {"b"}), "true or false where"));
    EXPECT_TRUE(says(fault(R"({"b": [], "b": []})", {"b"}), "\"b\" is there twice"));
}

TEST(BoxJson, what_is_no_json) {
    for (const char* json : {"", " ", "[[1,2,NaN,4]]", "[[1,2,-Infinity,4]]", "[[1,2,3,4]",
                             "[[1,2,3,4", "[[1,2,3,4]]x", "[[1,2,3,01]]", "[[1,2,3,.5]]",
                             "[[1,2,3,5.]]", "[[1,2,3,+5]]", "[[1,2,3,5e]]", "[[1,2,3,--5]]",
                             "[[1 2,3,4]]", "[[1,2,3,4],]", "[[1,2,3,4,]]", "[x]", "nul", "\xff"})
        EXPECT_TRUE(says(fault(json), "this is no JSON")) << json << fault(json);
    for (const char* json :
         {R"({"b" [[1,2,3,4]]})", R"({b: [[1,2,3,4]]})", R"({"b": [[1,2,3,4]])", R"({"b)",
          R"({"x": , "b": []})", R"({"x": [}, "b": []})", R"({"x": [1, {"y": 2], "b": []})",
          R"({"x": "\", "b": []})", R"({"x": ")", R"({"x": "\)", R"({"\x": 1, "b": []})",
          R"({"b": [],})", R"({"x": [[1,2)", R"({"x": })"})
        EXPECT_TRUE(says(fault(json, {"b"}), "this is no JSON")) << json << fault(json, {"b"});
    EXPECT_TRUE(says(fault("[[1,2,NaN,4]]"),
                     "there is \"NaN,4]]\" at byte 6 of the field, where a value should be"));
}

TEST(BoxJson, a_number_too_large_for_a_double) {
    EXPECT_TRUE(says(fault("[[1,2,3,1e999]]"),
                     "the number at byte 8 of the field is too large for a double"));
    EXPECT_TRUE(says(fault("[[1,2,3," + std::string(5000, '9') + "]]"), "is too large"));
}

// Names with escapes, blanks everywhere, brackets in texts.
TEST(BoxJson, how_else_json_is_written) {
    const Boxes one = {{1, -2, 3e2, 0.5}};
    EXPECT_EQ(read("\xef\xbb\xbf[[1,-2,3E+2,5e-1]]"), one);
    EXPECT_EQ(read("[[1e-400,-1e-400,0,1e308]]"), (Boxes{{0, 0, 0, 1e308}}));
    EXPECT_EQ(read("\n[ [ 1 ,\t-2 , 300.0 ,0.5 ] ]\r\n"), one);
    EXPECT_EQ(read(R"({"x\"}": "]}\\", "\u0062" : [[1,-2,300,0.5]], "y": {"b\\": "{[\""}})", {"b"}),
              one);
    EXPECT_EQ(
        read(R"({"score": NaN, "z": [NaN, null, {"b": true}], "b": [[1,-2,300,0.5]]})", {"b"}),
        one);
    EXPECT_EQ(read(R"({"größe": [[1,-2,300,0.5]]})", {"größe"}), one);
}

TEST(BoxJson, at_most_so_many) {
    EXPECT_EQ(read("[[1,2,3,4],[1,2,3,4]]", {}, 2).size(), 2U);
    EXPECT_TRUE(says(fault("[[1,2,3,4],[1,2,3,4]]", {}, 1), "max_decoded"));
}

// What becomes of boxes in an image of 60 x 40 pixels.
struct Made {
    std::vector<std::array<float, 4>> boxes;
    std::vector<int64_t> kept;
};

Made made(std::string_view json, const std::string& words, const std::string& box_words = "",
          uint64_t random = 3) {
    const DecodeSpec spec =
        DecodeSpec::parse("png:image" + words + ", json:boxes" + box_words + "/of=png");
    const Bytes image = png_grey(60, 40, Bytes(60 * 40, 1));
    Made out;
    for (const ColumnSpec& column : spec.columns) {
        if (column.kind != ColumnSpec::Kind::boxes) continue;
        const auto decoder = box_decoder(column.boxes, column.image, 1 << 20);
        const ArrayType type = decoder->measure_beside(image, bytes_of(json), random).type;
        std::vector<uint8_t> bytes(static_cast<size_t>(type.bytes()));
        DecodeScratch scratch;
        decoder->decode_beside(image, bytes_of(json), random, type, bytes, scratch);
        const auto count = static_cast<size_t>(type.shape[0]);
        if (type.ndim == 2) {
            EXPECT_EQ(type.text(), "float32 (" + std::to_string(count) + ", 4)");
            out.boxes.resize(count);
            if (count > 0) std::memcpy(out.boxes.data(), bytes.data(), bytes.size());
        } else {
            EXPECT_EQ(type.dtype, DType::i64);
            out.kept.resize(count);
            if (count > 0) std::memcpy(out.kept.data(), bytes.data(), bytes.size());
        }
    }
    EXPECT_EQ(out.boxes.size(), out.kept.size());
    return out;
}

using Sides = std::vector<std::array<float, 4>>;

TEST(BoxDecoder, formats) {
    const Sides wanted = {{10, 4, 30, 24}};
    EXPECT_EQ(made("[[10, 4, 30, 24]]", "").boxes, wanted);
    EXPECT_EQ(made("[[10, 4, 30, 24]]", "", "/xyxy").boxes, wanted);
    EXPECT_EQ(made("[[10, 4, 20, 20]]", "", "/xywh").boxes, wanted);
    EXPECT_EQ(made("[[20, 14, 20, 20]]", "", "/cxcywh").boxes, wanted);
    EXPECT_EQ(made("[[0.5, 0.5, 0.5, 0.25]]", "", "/cxcywh/relative").boxes,
              (Sides{{15, 15, 45, 25}}));
    EXPECT_EQ(made(R"({"o": {"b": [[10, 4, 20, 20]]}})", "", "/xywh/path=o.b").boxes, wanted);
}

TEST(BoxDecoder, steps_move_boxes) {
    const std::string_view json = "[[10, 4, 30, 24]]";
    EXPECT_EQ(made(json, "/resize=30x80").boxes, (Sides{{5, 8, 15, 48}}));
    EXPECT_EQ(made(json, "/resize=20").boxes, (Sides{{5, 2, 15, 12}}));
    EXPECT_EQ(made(json, "/flip=always").boxes, (Sides{{30, 4, 50, 24}}));
    EXPECT_EQ(made(json, "/crop=40x20").boxes, (Sides{{0, 0, 20, 14}}));
    EXPECT_EQ(made(json, "/pad=5x3").boxes, (Sides{{15, 7, 35, 27}}));
    EXPECT_EQ(made(json, "/pad=to:100x100/flip=always").boxes, (Sides{{50, 34, 70, 54}}));
    EXPECT_EQ(made(json, "/crop=40x20/resize=80x40/flip=always").boxes, (Sides{{40, 0, 80, 28}}));
    EXPECT_EQ(made(json, "/resize=fit:30x30/pad=to:30x30/fill=114").boxes, (Sides{{5, 7, 15, 17}}));
}

// The pixels of a box have a level of their own, so the decoded image shows where they are.
TEST(BoxDecoder, boxes_lie_on_their_pixels) {
    const char* const words[] = {"/rrc=48x36/flip=random/filter=nearest",
                                 "/flip=random/rrc=48x36/filter=nearest",
                                 "/crop=random:50x30/flip=random/pad=3",
                                 "/pad=8/crop=random:60x40/flip=random",
                                 "/flip=random/pad=to:70x50/crop=random:60x40",
                                 "/resize=120x80/crop=random:90x60/flip=random/filter=nearest"};
    constexpr int left = 12, top = 9, right = 41, bottom = 30;
    Bytes pixels(60 * 40, 0);
    for (int y = top; y < bottom; ++y)
        for (int x = left; x < right; ++x) pixels[static_cast<size_t>(60 * y + x)] = 200;
    const Bytes image = png_grey(60, 40, pixels);
    const std::string_view json = "[[12, 9, 41, 30]]";
    size_t seen = 0;
    for (const char* const steps : words) {
        const std::string text = std::string("png:image/l8") + steps + ", json:boxes/of=png";
        const DecodeSpec spec = DecodeSpec::parse(text);
        const auto pictures = image_decoder(spec.columns[0].image, 1 << 20);
        for (uint64_t random = 0; random < 60; ++random) {
            const std::string words_of_box = std::string("/l8") + steps;
            const Made boxes = made(json, words_of_box, "", random);
            const ArrayType type = pictures->measure(image, random).type;
            Bytes out(static_cast<size_t>(type.bytes()));
            DecodeScratch scratch;
            pictures->decode(image, random, type, out, scratch);
            int64_t least_x = type.shape[1], least_y = type.shape[0], most_x = 0, most_y = 0;
            for (int64_t y = 0; y < type.shape[0]; ++y)
                for (int64_t x = 0; x < type.shape[1]; ++x) {
                    if (out[static_cast<size_t>(y * type.shape[1] + x)] != 200) continue;
                    least_x = std::min(least_x, x);
                    least_y = std::min(least_y, y);
                    most_x = std::max(most_x, x + 1);
                    most_y = std::max(most_y, y + 1);
                }
            if (boxes.boxes.empty()) {
                EXPECT_LE((most_x - least_x) * (most_y - least_y), type.shape[0] * 2);
                continue;
            }
            ++seen;
            const auto& [x1, y1, x2, y2] = boxes.boxes[0];
            // The nearest pixel: half a pixel of the result at most.
            EXPECT_NEAR(x1, static_cast<double>(least_x), 0.51) << steps << random;
            EXPECT_NEAR(y1, static_cast<double>(least_y), 0.51) << steps << random;
            EXPECT_NEAR(x2, static_cast<double>(most_x), 0.51) << steps << random;
            EXPECT_NEAR(y2, static_cast<double>(most_y), 0.51) << steps << random;
        }
    }
    EXPECT_GT(seen, 300U);
}

TEST(BoxDecoder, boxes_are_clipped_and_left_out) {
    // Across each border of the crop, outside, smaller than a pixel, and whole.
    const Made left = made(
        "[[0, 0, 25, 25], [30, 15, 59, 39], [0, 0, 9, 9], [12, 12, 12.5, 30], [20, 20, 20, 20],"
        " [20, 12, 30, 22]]",
        "/crop=40x20");
    EXPECT_EQ(left.boxes, (Sides{{0, 0, 15, 15}, {20, 5, 40, 20}, {10, 2, 20, 12}}));
    EXPECT_EQ(left.kept, (std::vector<int64_t>{0, 1, 5}));
    // One of exactly a pixel stays. What lies beside the image is cut off, also where it is padded.
    EXPECT_EQ(made("[[3, 3, 4, 4], [-20, -5, 5, 45]]", "/pad=30").boxes,
              (Sides{{33, 33, 34, 34}, {30, 30, 35, 70}}));
    EXPECT_TRUE(made("[]", "/crop=40x20").boxes.empty());
    // Numbers whose sums are no finite ones.
    EXPECT_EQ(made("[[-1e308, -1e308, 1.7e308, 1.7e308]]", "/crop=40x20", "/xywh/relative").boxes,
              (Sides{{0, 0, 40, 20}}));
}

TEST(BoxDecoder, boxes_of_another_image) {
    const auto refused = [](const char* json, const char* words = "") {
        try {
            made(json, "/crop=40x20", words);
            return std::string("accepted");
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), SHF_E_FORMAT);
            return std::string(error.what());
        }
    };
    EXPECT_TRUE(
        says(refused("[[1,1,9,9],[10, 10, 5, 20]]"), "box 1, [10, 10, 5, 20], ends before"));
    EXPECT_TRUE(says(refused("[[10, 10, 5, -1]]", "/xywh"), "ends before"));
    EXPECT_TRUE(says(refused("[[10, 10, -5, 1]]", "/cxcywh"), "ends before"));
    EXPECT_TRUE(says(refused("[[61, 10, 70, 20]]"), "beside its image of 60x40"));
    EXPECT_TRUE(says(refused("[[-9, 10, -2, 20]]"), "beside its image"));
    EXPECT_TRUE(says(refused("[[5, 41, 9, 45]]"), "beside its image"));
    EXPECT_TRUE(says(refused("[[0.1, 0.1, 0.9, 0.5]]"), "relative is for"));
    EXPECT_TRUE(says(refused("[[10, 10, 20, 20]]", "/relative"), "numbers in 0..1"));
}

}  // namespace
}  // namespace shf::test
