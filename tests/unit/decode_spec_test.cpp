// The option "decode": what is understood, and where errors point.
#include "batch/decode_spec.h"

#include "core/error.h"

#include <gtest/gtest.h>

#include <array>

namespace shf::test {
namespace {

using Kind = ColumnSpec::Kind;

// Where the mark stands in the message, or what else happened.
std::string pointed(const std::string& text) {
    try {
        DecodeSpec::parse(text);
        return "accepted";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), SHF_E_USAGE);
        const std::string message = error.what();
        const size_t mark = message.find(" >>> ");
        if (mark == std::string::npos) return message;
        const std::string rest = message.substr(mark + 5);
        // Up to the quote that ends the text.
        return rest.substr(0, rest.find('"'));
    }
}

TEST(DecodeSpec, columns_with_kinds) {
    const DecodeSpec spec = DecodeSpec::parse(
        "jpg:image/rgb8/chw/resize=256x256, cls:int, json:bytes,a.txt : text ,x:npy,y:npz/w, "
        "s:float, m:msgpack, j:json");
    ASSERT_EQ(spec.columns.size(), 9U);
    EXPECT_FALSE(spec.automatic);
    EXPECT_EQ(spec.columns[0].name(), "jpg");
    EXPECT_EQ(spec.columns[0].image, (ImageOptions{.mode = ImageOptions::Mode::rgb8,
                                                   .channels_first = true,
                                                   .resize = ImageOptions::Resize::exact,
                                                   .width = 256,
                                                   .height = 256}));
    const std::vector<Kind> kinds = {Kind::image, Kind::integer, Kind::bytes,
                                     Kind::text,  Kind::npy,     Kind::npz,
                                     Kind::real,  Kind::msgpack, Kind::json};
    for (size_t i = 0; i < kinds.size(); ++i) EXPECT_EQ(spec.columns[i].kind, kinds[i]) << i;
    EXPECT_EQ(spec.columns[3].name(), "a.txt");
    EXPECT_EQ(spec.columns[5].member, "w");
}

TEST(DecodeSpec, lists) {
    const DecodeSpec spec =
        DecodeSpec::parse("json:list/ids, json;jsn:list/mask, tokens.json;json:list");
    ASSERT_EQ(spec.columns.size(), 3U);
    EXPECT_EQ(spec.columns[0].name(), "json.ids");
    EXPECT_EQ(spec.columns[0].fields, std::vector<std::string>{"json"});
    EXPECT_EQ(spec.columns[1].name(), "json.mask");
    EXPECT_EQ(spec.columns[1].member, "mask");
    EXPECT_EQ(spec.columns[2].name(), "tokens.json");
    for (const ColumnSpec& column : spec.columns) EXPECT_EQ(column.kind, Kind::list);
    EXPECT_EQ(pointed("json:list/a, json:list/a"), " json:list/a");
    EXPECT_EQ(pointed("json:list/a/b"), "b");
}

TEST(DecodeSpec, arrays_of_files_with_several) {
    const DecodeSpec spec = DecodeSpec::parse(
        "ten:ten, 0.ten:ten/part=0, 0.ten;1.ten : ten / part=12, m:safetensors, "
        "m:safetensors/tensor=a.b/c/d, m.safetensors.gz:safetensors/tensor=x=y");
    ASSERT_EQ(spec.columns.size(), 6U);
    const std::vector<std::string> names = {"ten", "0.ten.0",   "0.ten.12",
                                            "m",   "m.a.b/c/d", "m.safetensors.gz.x=y"};
    for (size_t i = 0; i < names.size(); ++i) {
        EXPECT_EQ(spec.columns[i].name(), names[i]);
        EXPECT_EQ(spec.columns[i].kind, i < 3 ? Kind::ten : Kind::safetensors);
    }
    EXPECT_EQ(spec.columns[0].part, std::nullopt);
    EXPECT_EQ(spec.columns[1].part, 0U);
    EXPECT_EQ(spec.columns[2].part, 12U);
    EXPECT_EQ(spec.columns[4].member, "a.b/c/d");
    EXPECT_EQ(row_field_of(spec.columns[4]), "m.a.b:c:d");
    EXPECT_EQ(pointed("x:ten/part="), "part=");
    EXPECT_EQ(pointed("x:ten/part=-1"), "part=-1");
    EXPECT_EQ(pointed("x:ten/part=1x"), "part=1x");
    EXPECT_EQ(pointed("x:ten/part=18446744073709551616"), "part=18446744073709551616");
    EXPECT_EQ(pointed("x:ten/1"), "1");
    EXPECT_EQ(pointed("x:ten/part=1/part=2"), "part=2");
    EXPECT_EQ(pointed("x:safetensors/"), "");
    EXPECT_EQ(pointed("x:safetensors/tensor="), "tensor=");
    EXPECT_EQ(pointed("x:safetensors/w"), "w");
    EXPECT_EQ(pointed("x:npy/part=1"), "part=1");
    // Servers of feeds send these under one name.
    EXPECT_EQ(pointed("x:safetensors/tensor=a:b, x:safetensors/tensor=a/b"),
              " x:safetensors/tensor=a/b");
    EXPECT_EQ(pointed("x:ten/part=1, x:ten/part=1"), " x:ten/part=1");
}

TEST(DecodeSpec, fields_that_are_compressed) {
    const DecodeSpec spec = DecodeSpec::parse(
        "json.gz, a.npy.zst, bin.gz, gz, x.jpg.gz;jpg:image/l8, "
        "y.gz;y:bytes/compressed");
    const std::vector<Kind> kinds = {Kind::json,  Kind::npy,   Kind::bytes,
                                     Kind::bytes, Kind::image, Kind::bytes};
    ASSERT_EQ(spec.columns.size(), kinds.size());
    for (size_t i = 0; i < kinds.size(); ++i) {
        EXPECT_EQ(spec.columns[i].kind, kinds[i]) << i;
        EXPECT_EQ(spec.columns[i].compressed, i == 5) << i;
    }
    EXPECT_EQ(spec.columns[0].name(), "json.gz");
    EXPECT_EQ(pointed("bin:bytes/compressed"), "compressed");
    EXPECT_EQ(pointed("bin.gz:bytes/compressed/compressed"), "compressed");
    EXPECT_EQ(pointed("json.gz:json/compressed"), "compressed");
}

TEST(DecodeSpec, alternatives_and_suffixes) {
    const DecodeSpec spec = DecodeSpec::parse("jpg;jpeg ; png:image/l8, cls, seg.png, x.foo");
    ASSERT_EQ(spec.columns.size(), 4U);
    EXPECT_EQ(spec.columns[0].fields, (std::vector<std::string>{"jpg", "jpeg", "png"}));
    EXPECT_EQ(spec.columns[0].image.mode, ImageOptions::Mode::l8);
    EXPECT_EQ(spec.columns[1].kind, Kind::integer);
    EXPECT_EQ(spec.columns[2].kind, Kind::image);
    EXPECT_EQ(spec.columns[3].kind, Kind::bytes);
    EXPECT_TRUE(DecodeSpec::parse(" auto ").automatic);
}

TEST(DecodeSpec, image_words) {
    const auto image = [](const std::string& words) {
        return DecodeSpec::parse("x:image" + words).columns[0].image;
    };
    EXPECT_EQ(image(""), ImageOptions());
    EXPECT_EQ(image("/resize=224"),
              (ImageOptions{.resize = ImageOptions::Resize::shorter, .width = 224}));
    EXPECT_EQ(image("/resize=fit:64x32"),
              (ImageOptions{.resize = ImageOptions::Resize::fit, .width = 64, .height = 32}));
    EXPECT_EQ(
        image("/crop=10x20"),
        (ImageOptions{.crop = ImageOptions::Crop::centre, .crop_width = 10, .crop_height = 20}));
    EXPECT_EQ(image("/exif/crop=random:10x20/flip=random"),
              (ImageOptions{.crop = ImageOptions::Crop::random,
                            .crop_width = 10,
                            .crop_height = 20,
                            .flip = ImageOptions::Flip::random,
                            .orient = true}));
    EXPECT_EQ(image("/rgb/hwc/flip=always").flip, ImageOptions::Flip::always);
}

TEST(DecodeSpec, words_of_training) {
    const auto image = [](const std::string& words) {
        return DecodeSpec::parse("x:image/" + words).columns[0].image;
    };
    ImageOptions promised{.mode = ImageOptions::Mode::rgb,
                          .channels_first = true,
                          .normalize = {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}},
                          .resize = ImageOptions::Resize::exact,
                          .width = 224,
                          .height = 192,
                          .crop = ImageOptions::Crop::area,
                          .flip = ImageOptions::Flip::random,
                          .crop_first = true};
    EXPECT_EQ(image("rgb/chw/rrc=224x192/flip=random/normalize=imagenet"), promised);
    EXPECT_EQ(image("chw/rrc=224x192/flip=random/normalize=imagenet/float32"), promised);
    promised.scale = {0.25, 1};
    promised.ratio = {0.5, 2};
    promised.filter = ImageOptions::Filter::bicubic;
    promised.precision = ImageOptions::Precision::bfloat16;
    EXPECT_EQ(image("scale=0.25..1/rgb/bfloat16/chw/ratio=0.5..2/rrc=224x192/filter=bicubic/"
                    "flip=random/normalize=0.485:0.456:0.406:0.229:0.224:0.225"),
              promised);
    EXPECT_EQ(image("uint8/l").mode, ImageOptions::Mode::l8);
    EXPECT_EQ(
        image("pad=to:9x8/fill=3"),
        (ImageOptions{.pad = ImageOptions::Pad::size, .pad_width = 9, .pad_height = 8, .fill = 3}));
    EXPECT_TRUE(image("crop=4x4/pad=2/flip=random").crop_before_pad);
    EXPECT_FALSE(image("pad=2/crop=4x4/flip=random").crop_before_pad);
}

TEST(DecodeSpec, views_are_columns) {
    const DecodeSpec spec =
        DecodeSpec::parse("jpg;png:image/rgb8/brightness=0.5..1.5/jitter=0.8/views=3, cls");
    ASSERT_EQ(spec.columns.size(), 4U);
    for (uint32_t view = 0; view < 3; ++view) {
        const ColumnSpec& column = spec.columns[view];
        EXPECT_EQ(column.name(), "jpg." + std::to_string(view));
        EXPECT_EQ(column.fields, (std::vector<std::string>{"jpg", "png"}));
        EXPECT_EQ(column.image.view, view);
        EXPECT_EQ(column.image.colours.brightness, (ImageOptions::Range{0.5, 1.5}));
        EXPECT_EQ(column.image.colours.jitter, 0.8);
    }
    EXPECT_EQ(spec.columns[3].name(), "cls");
    EXPECT_EQ(pointed("jpg:image/views=1"), "1");
    EXPECT_EQ(pointed("jpg.1, jpg:image/views=2"), " jpg:image/views=2");
    EXPECT_EQ(pointed("jpg:image/l16/hue=0..0.1"), "hue=0..0.1");
}

TEST(DecodeSpec, sets_of_operations) {
    using Augment = ImageOptions::Augment;
    const auto augment = [](const std::string& words) {
        return DecodeSpec::parse("x:image/" + words).columns[0].image.augment;
    };
    EXPECT_EQ(augment("rgb"), Augment());
    EXPECT_EQ(augment("randaugment"), (Augment{Augment::Set::randaugment, 2, 9, false}));
    EXPECT_EQ(augment("randaugment=3:12:bilinear"),
              (Augment{Augment::Set::randaugment, 3, 12, true}));
    EXPECT_EQ(augment("trivialaugment/fill=9").set, Augment::Set::trivialaugment);
    EXPECT_TRUE(augment("trivialaugment=bilinear").bilinear);
    EXPECT_EQ(pointed("jpg:image/randaugment=2:31"), "31");
    EXPECT_EQ(pointed("jpg:image/randaugment=2"), "");
    EXPECT_EQ(pointed("jpg:image/trivialaugment=9"), "9");
    EXPECT_EQ(pointed("jpg:image/blur=0.5/kernel=4"), "4");
    EXPECT_EQ(pointed("jpg:image/sigma=1..2"), "sigma=1..2");
}

TEST(DecodeSpec, a_mask_keeps_its_labels) {
    const ImageOptions image =
        DecodeSpec::parse("png:image/mask/rrc=8x8/trivialaugment").columns[0].image;
    EXPECT_TRUE(image.mask);
    EXPECT_EQ(image.mode, ImageOptions::Mode::l8);
    EXPECT_EQ(image.filter, ImageOptions::Filter::nearest);
    EXPECT_EQ(DecodeSpec::parse("png:image/l16/mask").columns[0].image.mode,
              ImageOptions::Mode::l16);
    EXPECT_EQ(pointed("png:image/rgb/mask"), "mask");
    EXPECT_EQ(pointed("png:image/mask/float32"), "float32");
    EXPECT_EQ(pointed("png:image/mask/hue=0..0.1"), "hue=0..0.1");
    EXPECT_EQ(pointed("png:image/mask/resize=8/filter=box"), "filter=box");
    EXPECT_EQ(pointed("mp4:video/mask"), "mask");
}

TEST(DecodeSpec, a_column_of_no_field) {
    const DecodeSpec spec = DecodeSpec::parse("jpg, __augment__ ");
    ASSERT_EQ(spec.columns.size(), 2U);
    EXPECT_EQ(spec.columns[1].name(), "__augment__");
    EXPECT_EQ(spec.columns[1].kind, Kind::json);
    EXPECT_TRUE(spec.columns[1].records);
    EXPECT_FALSE(spec.columns[0].records);
    EXPECT_EQ(pointed("jpg, __augment__:json"), " __augment__:json");
    EXPECT_EQ(pointed("__augment__, __augment__"), " __augment__");
}

TEST(DecodeSpec, mixed_rows_have_a_column_behind_the_others) {
    const DecodeSpec spec = DecodeSpec::parse("jpg:image/rrc=9x9/mixup=0.2/cutmix=1, cls");
    ASSERT_EQ(spec.columns.size(), 3U);
    EXPECT_EQ(spec.columns[0].mixing, (RowMixing{.mixup = 0.2, .cutmix = 1}));
    EXPECT_FALSE(spec.columns[1].mixing.any());
    EXPECT_EQ(spec.columns[2].name(), "__mix_index__");
    EXPECT_EQ(spec.columns[2].kind, Kind::integer);
    EXPECT_TRUE(spec.columns[2].pairs);
    EXPECT_EQ(DecodeSpec::parse("jpg:image/rrc=9x9, cls").columns.size(), 2U);
    EXPECT_EQ(pointed("jpg:image/mixup=0"), "0");
    EXPECT_EQ(pointed("jpg:image/cutmix=1001"), "1001");
    EXPECT_EQ(pointed("jpg:image/mixup=x"), "x");
    EXPECT_EQ(pointed("jpg:image/mixup"), "");
    EXPECT_EQ(pointed("jpg:image/mixup=1/mixup=2"), "mixup=2");
    EXPECT_EQ(pointed("jpg:image/mixup=1/views=2"), "mixup=1/views=2");
    EXPECT_EQ(pointed("jpg:image/mixup=1, png:image/cutmix=1"), " png:image/cutmix=1");
    EXPECT_EQ(pointed("jpg:image/mixup=1, __mix_box__"), "jpg:image/mixup=1, __mix_box__");
}

TEST(DecodeSpec, boxes_have_the_words_of_their_image) {
    const DecodeSpec spec = DecodeSpec::parse(
        "jpg;png:image/resize=9/flip=random, cls, json;x.json:boxes/xywh/path=a.b/of=jpg");
    ASSERT_EQ(spec.columns.size(), 4U);
    EXPECT_EQ(spec.columns[2].name(), "json.boxes");
    EXPECT_EQ(spec.columns[3].name(), "json.kept");
    for (const size_t c : {size_t{2}, size_t{3}}) {
        const ColumnSpec& column = spec.columns[c];
        EXPECT_EQ(column.kind, Kind::boxes);
        EXPECT_EQ(column.fields, (std::vector<std::string>{"json", "x.json"}));
        EXPECT_EQ(column.image, spec.columns[0].image);
        EXPECT_EQ(column.image_column, 0U);
        EXPECT_EQ(column.boxes.path, (std::vector<std::string>{"a", "b"}));
        EXPECT_EQ(column.boxes.format, BoxOptions::Format::xywh);
    }
    EXPECT_EQ(spec.columns[3].boxes.result, BoxOptions::Result::kept);
    EXPECT_EQ(DecodeSpec::parse("x:image/views=2, j:boxes/of=x.1").columns[3].name(), "j.kept.1");
    EXPECT_EQ(pointed("jpg, json:boxes"), "");
    EXPECT_EQ(pointed("json:boxes/of=jpg, jpg"), "jpg, jpg");
    EXPECT_EQ(pointed("cls, json:boxes/of=cls"), "cls");
    EXPECT_EQ(pointed("jpg, json:boxes/of=jpg/path=a..b"), ".b");
    EXPECT_EQ(pointed("jpg, json:boxes/of=jpg/yxyx"), "yxyx");
    EXPECT_EQ(pointed("jpg, json:boxes/of=jpg/of=jpg"), "of=jpg");
    EXPECT_EQ(pointed("jpg, json:boxes/of=jpg/relative/relative"), "relative");
    EXPECT_EQ(pointed("jpg:image/trivialaugment, json:boxes/of=jpg"), "jpg");
}

TEST(DecodeSpec, image_steps_have_an_order) {
    const auto order = [](const std::string& words) {
        const ImageOptions image = DecodeSpec::parse("x:image/" + words).columns[0].image;
        return std::array{image.crop_first, image.flip_before_resize, image.flip_before_crop};
    };
    using Order = std::array<bool, 3>;
    EXPECT_EQ(order("resize=9/crop=4x4/flip=always"), (Order{false, false, false}));
    EXPECT_EQ(order("crop=4x4/resize=9/flip=always"), (Order{true, false, false}));
    EXPECT_EQ(order("crop=4x4/flip=always/resize=9"), (Order{true, true, false}));
    EXPECT_EQ(order("resize=9/flip=always/crop=4x4"), (Order{false, false, true}));
    EXPECT_EQ(order("flip=always/rgb8/resize=9/crop=4x4"), (Order{false, true, true}));
    // Of one column only.
    EXPECT_EQ(DecodeSpec::parse("a:image/crop=4x4, b:image/resize=9").columns[1].image,
              DecodeSpec::parse("b:image/resize=9").columns[0].image);
}

TEST(DecodeSpec, errors_point_at_the_character) {
    EXPECT_EQ(pointed("jpg:picture"), "picture");
    EXPECT_EQ(pointed("cls:int, jpg:image/rgb9/chw"), "rgb9/chw");
    EXPECT_EQ(pointed("jpg:image/resize=axb"), "axb");
    EXPECT_EQ(pointed("jpg:image/resize=0"), "0");
    EXPECT_EQ(pointed("jpg:image/resize=70000"), "70000");
    EXPECT_EQ(pointed("jpg:image/resize=fit:64"), "");
    EXPECT_EQ(pointed("jpg:image/crop=64"), "");
    EXPECT_EQ(pointed("jpg:image/crop=random:64xx"), "x");
    EXPECT_EQ(pointed("jpg:image/flip=up, cls:int"), "up, cls:int");
    EXPECT_EQ(pointed("cls:int/2"), "2");
    EXPECT_EQ(pointed("cls:int,"), "");
    EXPECT_EQ(pointed(""), "");
    EXPECT_EQ(pointed("a;;b:int"), ";b:int");
    EXPECT_EQ(pointed(":int"), ":int");
    EXPECT_EQ(pointed("x:npz"), "");
    EXPECT_EQ(pointed("a/b:int"), "a/b:int");
    EXPECT_EQ(pointed("a:int, a:text"), " a:text");
    EXPECT_EQ(pointed("jpg:image/"), "");
    EXPECT_EQ(pointed("jpg:image/resize=9/crop=4x4/resize=8"), "resize=8");
    EXPECT_EQ(pointed("jpg:image/crop=4x4/resize=9/crop=random:2x2"), "crop=random:2x2");
    EXPECT_EQ(pointed("jpg:image/flip=random/flip=always"), "flip=always");
    EXPECT_EQ(pointed("jpg:image/rgb8/l8"), "l8");
    EXPECT_EQ(pointed("jpg:image/chw/hwc"), "hwc");
    EXPECT_EQ(pointed("jpg:image/crop=4x4/exif"), "exif");
    EXPECT_EQ(pointed("jpg:image/rrc=64x64/scale=0.5..2, cls"), "0.5..2, cls");
    EXPECT_EQ(pointed("jpg:image/rrc=64x64/ratio=2..1"), "1");
    EXPECT_EQ(pointed("jpg:image/rgb/normalize=0:0:0:1:1:x"), "x");
    EXPECT_EQ(pointed("jpg:image/rgb8/rrc=4x4/float16"), "float16");
}

}  // namespace
}  // namespace shf::test
