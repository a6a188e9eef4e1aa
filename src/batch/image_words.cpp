#include "batch/image_words.h"

#include "batch/words.h"
#include "core/error.h"
#include "core/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace shf {

namespace {

using Filter = ImageOptions::Filter;
using Mode = ImageOptions::Mode;
using Normalize = ImageOptions::Normalize;

constexpr std::pair<std::string_view, Mode> modes[] = {
    {"rgb8", Mode::rgb8}, {"l8", Mode::l8},   {"rgba8", Mode::rgba8}, {"rgb16", Mode::rgb16},
    {"l16", Mode::l16},   {"rgb", Mode::rgb}, {"l", Mode::l},
};

constexpr std::pair<std::string_view, Filter> filters[] = {
    {"nearest", Filter::nearest}, {"box", Filter::box},         {"bilinear", Filter::bilinear},
    {"hamming", Filter::hamming}, {"bicubic", Filter::bicubic}, {"lanczos", Filter::lanczos},
};

constexpr double above_0 = 1e-9;

// Those of torchvision's and open_clip's models; "half" is -1..1.
constexpr std::pair<std::string_view, Normalize> normalizations[] = {
    {"imagenet", {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}}},
    {"clip", {{0.48145466, 0.4578275, 0.40821073}, {0.26862954, 0.26130258, 0.27577711}}},
    {"half", {{0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}}},
};

}  // namespace

void ImageWords::refuse(size_t at, const std::string& cause, const std::string& help) const {
    refuse_text("decode", text_, at, cause, help);
}

// Each word once: a second one would take the place of the first.
void ImageWords::once(size_t& given, size_t at, const char* what) const {
    if (given != none)
        refuse(at, std::string("a second ") + what + (is_video_ ? " for a video" : " for an image"),
               "each of them once");
    given = at;
}

void ImageWords::add(size_t at, std::string_view word) {
    constexpr std::pair<std::string_view, Number> numbers[] = {
        {"uint8", Number::uint8},
        {"float32", Number::float32},
        {"float16", Number::float16},
        {"bfloat16", Number::bfloat16},
    };
    if (const auto mode = find_word(modes, word)) {
        once(given_.mode, at, "kind of pixels");
        image_.mode = *mode;
        return;
    }
    if (const auto number = find_word(numbers, word)) {
        once(given_.number, at, "kind of numbers");
        number_ = *number;
        return;
    }
    const ValuedWord parts = split_word(at, word);
    const std::string_view name = parts.name;
    const Value value{parts.value_at, parts.value};
    if (word == "hwc" || word == "chw") {
        once(given_.layout, at, "layout");
        image_.channels_first = word == "chw";
    } else if (word == "exact" && !is_video_) {
        once(given_.exact, at, "exact");
        image_.exact = true;
    } else if (word == "mask" && !is_video_) {
        once(given_.mask, at, "mask");
        image_.mask = true;
    } else if (word == "exif" && !is_video_) {
        once(given_.exif, at, "exif");
        const Given& g = given_;
        if (std::min({g.resize, g.crop, g.rrc, g.flip, g.pad}) != none)
            refuse(at, "an image is turned before all other steps",
                   "exif before resize, crop, rrc, flip and pad");
        image_.orient = true;
    } else if (!add_step(at, name, value) && !add_detail(at, name, value) &&
               !add_colour(at, name, value) && !add_augment(at, name, value) &&
               (is_video_ || !add_mixing(at, name, value))) {
        refuse(
            at,
            "unknown word \"" + escape(word) + (is_video_ ? "\" for a video" : "\" for an image"),
            "one of " +
                (is_video_ ? std::string("frames=, clip=, stride=, rate=, repeat, ")
                           : std::string("exif, exact, mask, mixup=, cutmix=, ")) +
                list_words(modes) + ", " + list_words(numbers) +
                ", hwc, chw, resize=, crop=, rrc=, flip=, pad=, filter=, scale=, ratio=, fill=, "
                "normalize=, brightness=, contrast=, saturation=, hue=, jitter=, grayscale=, "
                "blur=, sigma=, kernel=, solarize=, randaugment=, trivialaugment, views=");
    }
}

// What is done in its order. False: it is no such word.
bool ImageWords::add_step(size_t at, std::string_view name, const Value& value) {
    Given& g = given_;
    if (name == "resize" || name == "rrc") {
        if (g.rrc != none || (name == "rrc" && (g.resize != none || g.crop != none)))
            refuse(at, "a second crop or resize for an image", "rrc takes the place of both");
        if (g.pad != none)
            refuse(at, "an image is padded after it has its size",
                   name == "rrc" ? "rrc before pad" : "resize before pad");
        once(name == "rrc" ? g.rrc : g.resize, at, "resize");
        image_.flip_before_resize = g.flip != none;
    }
    if (name == "resize") {
        image_.crop_first = g.crop != none;
        parse_resize(value);
    } else if (name == "rrc") {
        const auto [width, height] = parse_size(value, false, "rrc=WxH");
        image_.crop = ImageOptions::Crop::area;
        image_.crop_first = true;
        image_.flip_before_crop = g.flip != none;
        image_.resize = ImageOptions::Resize::exact;
        image_.width = width;
        image_.height = height;
    } else if (name == "crop") {
        if (g.rrc != none)
            refuse(at, "a second crop for an image", "rrc takes the place of crop and resize");
        once(g.crop, at, "crop");
        image_.flip_before_crop = g.flip != none;
        parse_crop(value);
    } else if (name == "flip") {
        once(g.flip, at, "flip");
        if (value.text != "random" && value.text != "always")
            refuse(value.at, "bad flip", "flip=random or flip=always");
        image_.flip =
            value.text == "random" ? ImageOptions::Flip::random : ImageOptions::Flip::always;
    } else if (name == "pad") {
        once(g.pad, at, "pad");
        image_.crop_before_pad = g.crop != none;
        image_.flip_before_pad = g.flip != none;
        parse_pad(value);
    } else {
        return false;
    }
    return true;
}

// What says how a step is done. False: it is no such word.
bool ImageWords::add_detail(size_t at, std::string_view name, const Value& value) {
    if (name == "filter") {
        once(given_.filter, at, "filter");
        const auto filter = find_word(filters, value.text);
        if (!filter)
            refuse(value.at, "unknown filter \"" + escape(value.text) + "\"",
                   "one of " + list_words(filters));
        image_.filter = *filter;
    } else if (name == "scale") {
        static constexpr const char* help = "scale=0.08..1: parts of the area above 0, up to 1";
        once(given_.scale, at, "scale");
        image_.scale = parse_range(value, above_0, help);
        if (image_.scale.most > 1) refuse(value.at, "more than the whole image", help);
    } else if (name == "ratio") {
        once(given_.ratio, at, "ratio");
        image_.ratio = parse_range(value, above_0,
                                   "ratio=0.75..1.3333: width / height, the smaller one first");
    } else if (name == "fill") {
        once(given_.fill, at, "fill");
        static constexpr const char* help = "fill=0 up to fill=255";
        const double level = parse_number(value, help);
        if (level < 0 || level > 255 || level != std::floor(level))
            refuse(value.at, "no level of grey", help);
        image_.fill = static_cast<uint8_t>(level);
    } else if (name == "normalize") {
        once(given_.normalize, at, "normalize");
        parse_normalize(value);
    } else {
        return false;
    }
    return true;
}

// "640x480"; the second number may be missing where `one` is set.
std::pair<uint32_t, uint32_t> ImageWords::parse_size(const Value& value, bool one,
                                                     const char* help) const {
    const std::string_view text = value.text;
    const size_t times = std::min(text.find('x'), text.size());
    const auto number = [&](size_t from, size_t to) {
        uint32_t out = 0;
        const char* const stop = text.data() + to;
        const auto [end, error] = std::from_chars(text.data() + from, stop, out);
        if (error != std::errc() || end != stop || out < 1 || out > 65535)
            refuse(value.at + from, "not a number of pixels from 1 to 65535", help);
        return out;
    };
    const uint32_t width = number(0, times);
    if (times == text.size() && one) return {width, 0};
    if (times == text.size()) refuse(value.at + times, "no height", help);
    return {width, number(times + 1, text.size())};
}

double ImageWords::parse_number(const Value& value, const char* help) const {
    double number = 0;
    const char* const stop = value.text.data() + value.text.size();
    const auto [end, error] = std::from_chars(value.text.data(), stop, number);
    if (error != std::errc() || end != stop || !std::isfinite(number))
        refuse(value.at, "not a decimal number", help);
    return number;
}

// "0.08..1", both at least `least`.
ImageOptions::Range ImageWords::parse_range(const Value& value, double least,
                                            const char* help) const {
    const size_t dots = value.text.find("..");
    if (dots == value.text.npos) refuse(value.at, "no range", help);
    const Value last{value.at + dots + 2, value.text.substr(dots + 2)};
    const ImageOptions::Range range{parse_number({value.at, value.text.substr(0, dots)}, help),
                                    parse_number(last, help)};
    if (range.least < least) refuse(value.at, "a range that begins too low", help);
    if (range.most < range.least) refuse(last.at, "a range ends above its beginning", help);
    return range;
}

// What is done to the colours. False: it is no such word.
bool ImageWords::add_colour(size_t at, std::string_view name, const Value& value) {
    using Colours = ImageOptions::Colours;
    constexpr std::pair<std::string_view,
                        std::pair<size_t Given::*, ImageOptions::Range Colours::*>>
        factors[] = {{"brightness", {&Given::brightness, &Colours::brightness}},
                     {"contrast", {&Given::contrast, &Colours::contrast}},
                     {"saturation", {&Given::saturation, &Colours::saturation}},
                     {"hue", {&Given::hue, &Colours::hue}}};
    constexpr std::pair<std::string_view, std::pair<size_t Given::*, double Colours::*>> chances[] =
        {{"jitter", {&Given::jitter, &Colours::jitter}},
         {"grayscale", {&Given::grayscale, &Colours::grayscale}},
         {"blur", {&Given::blur, &Colours::blur}},
         {"solarize", {&Given::solarize, &Colours::solarize}}};
    if (const auto factor = find_word(factors, name)) {
        once(given_.*factor->first, at, "change of this kind");
        const bool is_hue = name == "hue";
        const char* const help = is_hue ? "hue=-0.1..0.1: parts of a turn, from -0.5 up to 0.5"
                                        : "factors, 1 for none: brightness=0.6..1.4";
        const ImageOptions::Range range = parse_range(value, is_hue ? -0.5 : 0, help);
        if (range.most > (is_hue ? 0.5 : 1000))
            refuse(value.at, "a range that ends too high", help);
        image_.colours.*factor->second = range;
    } else if (const auto chance = find_word(chances, name)) {
        once(given_.*chance->first, at, "chance of this kind");
        static constexpr const char* help = "a chance from 0 up to 1: grayscale=0.2";
        const double given = parse_number(value, help);
        if (given < 0 || given > 1) refuse(value.at, "no chance", help);
        image_.colours.*chance->second = given;
    } else if (name == "sigma") {
        static constexpr const char* help = "sigma=0.1..2: pixels above 0, up to 100";
        once(given_.sigma, at, "sigma");
        image_.colours.sigma = parse_range(value, 1e-3, help);
        if (image_.colours.sigma.most > 100) refuse(value.at, "a range that ends too high", help);
    } else if (name == "kernel") {
        once(given_.kernel, at, "kernel");
        parse_kernel(value);
    } else if (name == "views") {
        once(given_.views, at, "number of views");
        parse_views(value);
    } else {
        return false;
    }
    return true;
}

// A set of operations. False: it is no such word.
bool ImageWords::add_augment(size_t at, std::string_view name, const Value& value) {
    using Set = ImageOptions::Augment::Set;
    constexpr std::pair<std::string_view, Set> sets[] = {{"randaugment", Set::randaugment},
                                                         {"trivialaugment", Set::trivialaugment}};
    const auto set = find_word(sets, name);
    if (!set) return false;
    once(given_.augment, at, "set of operations");
    const bool is_rand = *set == Set::randaugment;
    const char* const help = is_rand
                                 ? "randaugment=2:9: operations, and a magnitude from 0 up to 30; "
                                   "randaugment=2:9:bilinear"
                                 : "trivialaugment, or trivialaugment=bilinear";
    image_.augment = {*set, is_rand ? 2U : 1U, is_rand ? 9U : 0U, false};
    if (value.at == at + name.size()) return true;  // the word alone
    size_t part = is_rand ? 0 : 2;
    for (size_t from = 0; from <= value.text.size(); ++part) {
        const size_t to = std::min(value.text.find(':', from), value.text.size());
        const Value word{value.at + from, value.text.substr(from, to - from)};
        from = to + 1;
        if (part < 2) {
            const double number = parse_number(word, help);
            const double least = part == 0 ? 1 : 0;
            const double most = part == 0 ? ImageOptions::Augment::most_operations : 30;
            if (number < least || number > most || number != std::floor(number))
                refuse(word.at, part == 0 ? "no number of operations" : "no magnitude", help);
            (part == 0 ? image_.augment.operations : image_.augment.magnitude) =
                static_cast<uint32_t>(number);
        } else if (part == 2 && (word.text == "bilinear" || word.text == "nearest")) {
            image_.augment.bilinear = word.text == "bilinear";
        } else {
            refuse(word.at, "neither nearest nor bilinear", help);
        }
    }
    if (part == 1) refuse(value.at + value.text.size(), "no magnitude", help);
    return true;
}

// How rows are mixed with others. False: it is no such word.
bool ImageWords::add_mixing(size_t at, std::string_view name, const Value& value) {
    if (name != "mixup" && name != "cutmix") return false;
    const bool is_mixup = name == "mixup";
    once(is_mixup ? given_.mixup : given_.cutmix, at, "mixing of this kind");
    static constexpr const char* help =
        "mixup=0.2, cutmix=1: the alpha of a beta distribution, from 0.001 up to 1000";
    const double alpha = parse_number(value, help);
    if (alpha < 0.001 || alpha > 1000) refuse(value.at, "no alpha", help);
    (is_mixup ? mixing_.mixup : mixing_.cutmix) = alpha;
    return true;
}

void ImageWords::parse_kernel(const Value& value) {
    static constexpr const char* help = "kernel=23: an odd number of pixels from 3 up to 255";
    const double pixels = parse_number(value, help);
    if (pixels < 3 || pixels > 255 || std::fmod(pixels, 2) != 1)
        refuse(value.at, "no size of a kernel", help);
    image_.colours.kernel = static_cast<uint32_t>(pixels);
}

void ImageWords::parse_views(const Value& value) {
    static constexpr const char* help = "views=2 up to views=16";
    const double views = parse_number(value, help);
    if (views < 2 || views > 16 || views != std::floor(views))
        refuse(value.at, "no number of views", help);
    views_ = static_cast<uint32_t>(views);
}

namespace {

// Whether the text begins so; takes that away.
bool take_start(std::string_view& text, size_t& at, std::string_view start) {
    if (!text.starts_with(start)) return false;
    text.remove_prefix(start.size());
    at += start.size();
    return true;
}

}  // namespace

void ImageWords::parse_resize(Value value) {
    static constexpr const char* help = "resize=N (shorter side), resize=WxH, or resize=fit:WxH";
    const bool fit = take_start(value.text, value.at, "fit:");
    const auto [width, height] = parse_size(value, !fit, help);
    image_.resize = fit           ? ImageOptions::Resize::fit
                    : height == 0 ? ImageOptions::Resize::shorter
                                  : ImageOptions::Resize::exact;
    image_.width = width;
    image_.height = height;
}

void ImageWords::parse_crop(Value value) {
    const bool random = take_start(value.text, value.at, "random:");
    const auto [width, height] = parse_size(value, false, "crop=WxH (centre) or crop=random:WxH");
    image_.crop = random ? ImageOptions::Crop::random : ImageOptions::Crop::centre;
    image_.crop_width = width;
    image_.crop_height = height;
}

void ImageWords::parse_pad(Value value) {
    static constexpr const char* help =
        "pad=N (on each side), pad=NxM (left and right, above and below), or pad=to:WxH";
    const bool to = take_start(value.text, value.at, "to:");
    const auto [width, height] = parse_size(value, !to, help);
    image_.pad = to ? ImageOptions::Pad::size : ImageOptions::Pad::sides;
    image_.pad_width = width;
    image_.pad_height = height == 0 ? width : height;
}

void ImageWords::parse_normalize(const Value& value) {
    static constexpr const char* help =
        "normalize=imagenet, clip or half, or the means and then the deviations of numbers in "
        "0..1: "
        "normalize=0.48:0.46:0.41:0.23:0.22:0.23, of grey normalize=0.45:0.22";
    if (const auto known = find_word(normalizations, value.text)) {
        image_.normalize = *known;
        return;
    }
    double numbers[6];
    size_t count = 0;
    for (size_t from = 0; from <= value.text.size(); ++count) {
        const size_t to = std::min(value.text.find(':', from), value.text.size());
        const Value number{value.at + from, value.text.substr(from, to - from)};
        if (count == 6) refuse(number.at, "more than six numbers", help);
        numbers[count] = parse_number(number, help);
        from = to + 1;
    }
    if (count != 6 && count != 2) refuse(value.at, "neither six numbers nor two", help);
    normalized_ = count / 2;
    for (size_t c = 0; c < 3; ++c) {
        image_.normalize.mean[c] = numbers[c % normalized_];
        image_.normalize.deviation[c] = numbers[normalized_ + c % normalized_];
        // As a float, too: what is divided by it must not be infinite for its size alone.
        if (!(image_.normalize.deviation[c] > 1e-30))
            refuse(value.at, "a deviation that is not above 0", help);
    }
}

ImageOptions ImageWords::finish() const {
    ImageOptions image = image_;
    const Given& g = given_;
    const bool is_float = number_ > Number::uint8;
    if (g.mask != none && g.mode == none) image.mode = Mode::l8;
    if (g.mode == none && g.mask == none &&
        (is_float || (g.normalize != none && number_ == Number::none)))
        image.mode = Mode::rgb;
    const bool float_mode = image.mode == Mode::rgb || image.mode == Mode::l;
    if (is_float && !float_mode)
        refuse(g.number, "these pixels have numbers of their own", "rgb or l: rgb/float16");
    if (number_ == Number::uint8 && float_mode)
        image.mode = image.mode == Mode::rgb ? Mode::rgb8 : Mode::l8;
    else if (number_ == Number::uint8 && (image.mode == Mode::rgb16 || image.mode == Mode::l16))
        refuse(g.number, "these pixels have numbers of their own", "rgb8 or l8");
    if (number_ == Number::float16) image.precision = ImageOptions::Precision::float16;
    if (number_ == Number::bfloat16) image.precision = ImageOptions::Precision::bfloat16;
    if (g.normalize != none) {
        if (image.mode != Mode::rgb && image.mode != Mode::l)
            refuse(g.normalize, "integers cannot be normalized", "rgb or l");
        if (image.mode == Mode::l && normalized_ != 1)
            refuse(g.normalize, "grey has one mean and one deviation", "normalize=0.45:0.22");
        if (image.mode == Mode::rgb && normalized_ == 1)
            refuse(g.normalize, "colours have three means and three deviations",
                   "normalize=imagenet, or six numbers");
    }
    const size_t colour = std::min({g.augment, g.brightness, g.contrast, g.saturation, g.hue,
                                    g.jitter, g.grayscale, g.blur, g.solarize});
    constexpr Mode changeable[] = {Mode::rgb8, Mode::rgb, Mode::l8, Mode::l};
    if (g.mask != none)
        check_mask(image);
    else if (colour != none && std::find(std::begin(changeable), std::end(changeable),
                                         image.mode) == std::end(changeable))
        refuse(colour, "these pixels have no colours to change", "rgb8, rgb, l8 or l");
    if (g.jitter != none && std::min({g.brightness, g.contrast, g.saturation, g.hue}) == none)
        refuse(g.jitter, "nothing that this belongs to",
               "brightness=, contrast=, saturation= or hue=");
    if (g.blur == none && std::min(g.sigma, g.kernel) != none)
        refuse(std::min(g.sigma, g.kernel), "nothing that this belongs to", "blur=0.5");
    if (g.rrc == none && std::min(g.scale, g.ratio) != none)
        refuse(std::min(g.scale, g.ratio), "nothing that this belongs to", "rrc=WxH");
    if (std::min(g.pad, g.augment) == none && g.fill != none)
        refuse(g.fill, "nothing that this belongs to",
               "pad=N, pad=to:WxH, randaugment or trivialaugment");
    if (const size_t mixing = std::min(g.mixup, g.cutmix); mixing != none && views_ > 0)
        refuse(mixing, "views of an image are not mixed with other rows",
               "leave out mixup, cutmix or views");
    if (image.resize == ImageOptions::Resize::none && g.filter != none)
        refuse(g.filter, "nothing that this belongs to", "resize= or rrc=");
    if (g.mask != none) image.filter = ImageOptions::Filter::nearest;
    return image;
}

// Labels stay what they are.
void ImageWords::check_mask(const ImageOptions& image) const {
    const Given& g = given_;
    if (image.mode == Mode::rgb || image.mode == Mode::l)
        refuse(g.mask, "the labels of a mask are whole numbers", "l8, l16, rgb8, rgba8 or rgb16");
    const size_t colour = std::min(
        {g.brightness, g.contrast, g.saturation, g.hue, g.jitter, g.grayscale, g.blur, g.solarize});
    if (colour != none)
        refuse(colour, "a mask has no colours to change", "the word mask without it");
    if (g.filter != none && image.filter != ImageOptions::Filter::nearest)
        refuse(g.filter, "between labels there are none", "filter=nearest, or none");
}

}  // namespace shf
