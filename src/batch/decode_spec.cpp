#include "batch/decode_spec.h"

#include "batch/audio_words.h"
#include "core/error.h"
#include "core/options.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace shf {

namespace {

using Kind = ColumnSpec::Kind;

template <typename Value, size_t n>
using Words = const std::pair<std::string_view, Value> (&)[n];

template <typename Value, size_t n>
std::optional<Value> find(Words<Value, n> words, std::string_view word) {
    for (const auto& [name, value] : words)
        if (name == word) return value;
    return std::nullopt;
}

template <typename Value, size_t n>
std::string list(Words<Value, n> words) {
    std::string out;
    for (const auto& [name, value] : words) out += (out.empty() ? "" : ", ") + std::string(name);
    return out;
}

constexpr std::pair<std::string_view, Kind> kinds[] = {
    {"bytes", Kind::bytes},     {"text", Kind::text},   {"json", Kind::json},
    {"msgpack", Kind::msgpack}, {"int", Kind::integer}, {"float", Kind::real},
    {"npy", Kind::npy},         {"npz", Kind::npz},     {"image", Kind::image},
    {"audio", Kind::audio},
};

constexpr std::pair<std::string_view, ImageOptions::Mode> modes[] = {
    {"rgb8", ImageOptions::Mode::rgb8},   {"l8", ImageOptions::Mode::l8},
    {"rgba8", ImageOptions::Mode::rgba8}, {"rgb16", ImageOptions::Mode::rgb16},
    {"l16", ImageOptions::Mode::l16},     {"rgb", ImageOptions::Mode::rgb},
    {"l", ImageOptions::Mode::l},
};

// By the part of the name after its last dot, as webdataset has them.
constexpr std::pair<std::string_view, Kind> suffixes[] = {
    {"jpg", Kind::image},       {"jpeg", Kind::image},      {"png", Kind::image},
    {"webp", Kind::image},      {"npy", Kind::npy},         {"cls", Kind::integer},
    {"cls2", Kind::integer},    {"index", Kind::integer},   {"inx", Kind::integer},
    {"id", Kind::integer},      {"txt", Kind::text},        {"text", Kind::text},
    {"transcript", Kind::text}, {"json", Kind::json},       {"jsn", Kind::json},
    {"flac", Kind::audio},      {"wav", Kind::audio},       {"ogg", Kind::audio},
    {"mp3", Kind::audio},       {"opus", Kind::audio},      {"mp", Kind::msgpack},
    {"msg", Kind::msgpack},     {"msgpack", Kind::msgpack},
};

// One text and a place in it, which errors point at.
class Parser {
  public:
    explicit Parser(std::string_view text) : text_(text) {}

    DecodeSpec parse() {
        DecodeSpec spec;
        if (trimmed(0, text_.size()).second == "auto") {
            spec.automatic = true;
            return spec;
        }
        for (size_t begin = 0; begin <= text_.size();) {
            const size_t end = std::min(text_.find(',', begin), text_.size());
            ColumnSpec column = parse_column(begin, end);
            for (const ColumnSpec& other : spec.columns)
                if (other.name() == column.name())
                    refuse(begin, "column \"" + escape(column.name()) + "\" is there twice",
                           "each field once");
            spec.columns.push_back(std::move(column));
            begin = end + 1;
        }
        return spec;
    }

  private:
    [[noreturn]] void refuse(size_t at, const std::string& cause, const std::string& help) const {
        refuse_text("decode", text_, at, cause, help);
    }

    // A stretch without the blanks around it, and where it begins.
    [[nodiscard]] std::pair<size_t, std::string_view> trimmed(size_t begin, size_t end) const {
        while (begin < end && (text_[begin] == ' ' || text_[begin] == '\n')) ++begin;
        while (end > begin && (text_[end - 1] == ' ' || text_[end - 1] == '\n')) --end;
        return {begin, text_.substr(begin, end - begin)};
    }

    ColumnSpec parse_column(size_t begin, size_t end) {
        const size_t colon = std::min(text_.find(':', begin), end);
        std::vector<std::string> fields;
        for (size_t from = begin; from <= colon;) {
            const size_t to = std::min(text_.find(';', from), colon);
            const auto [at, field] = trimmed(from, to);
            if (field.empty())
                refuse(at, "no field name", "FIELD:KIND, for example \"jpg:image/rgb8, cls:int\"");
            if (field.find('/') != field.npos)
                refuse(at, "a field name has no slash", "FIELD:KIND");
            fields.emplace_back(field);
            from = to + 1;
        }
        if (colon == end) {
            ColumnSpec column = column_for(fields[0]);
            column.fields = std::move(fields);
            return column;
        }
        ColumnSpec column;
        column.fields = std::move(fields);
        given_ = {};
        AudioWords audio_words(text_, column.audio);
        bool first = true;
        for (size_t from = colon + 1; from <= end;) {
            const size_t to = std::min(text_.find('/', from), end);
            const auto [at, word] = trimmed(from, to);
            if (std::exchange(first, false)) {
                const auto kind = find(kinds, word);
                if (!kind)
                    refuse(at, "unknown kind \"" + escape(word) + "\"", "one of " + list(kinds));
                column.kind = *kind;
            } else if (column.kind == Kind::audio) {
                audio_words.take(at, word);
            } else {
                modify(column, at, word);
            }
            from = to + 1;
        }
        if (column.kind == Kind::npz && column.member.empty())
            refuse(end, "no member of the npz", "npz/NAME");
        if (column.kind == Kind::audio) audio_words.end(end);
        return column;
    }

    void modify(ColumnSpec& column, size_t at, std::string_view word) {
        if (column.kind == Kind::npz && column.member.empty() && !word.empty()) {
            column.member = word;
            return;
        }
        if (column.kind != Kind::image)
            refuse(at, "nothing may stand after this kind", "a comma before the next field");
        // Each word once: a second one would take the place of the first.
        const auto once = [&](bool& given, const char* what) {
            if (std::exchange(given, true))
                refuse(at, std::string("a second ") + what + " for an image", "each of them once");
        };
        if (const auto mode = find(modes, word)) {
            once(given_.mode, "kind of pixels");
            column.image.mode = *mode;
            return;
        }
        const size_t equals = std::min(word.find('='), word.size());
        const std::string_view name = word.substr(0, equals);
        const std::string_view value =
            equals == word.size() ? std::string_view() : word.substr(equals + 1);
        const size_t value_at = at + std::min(equals + 1, word.size());
        if (word == "hwc" || word == "chw") {
            once(given_.layout, "layout");
            column.image.channels_first = word == "chw";
        } else if (word == "exif") {
            once(given_.exif, "exif");
            if (given_.resize || given_.crop || given_.flip)
                refuse(at, "an image is turned before all other steps",
                       "exif before resize, crop and flip");
            column.image.orient = true;
        } else if (name == "resize") {
            once(given_.resize, "resize");
            column.image.crop_first = given_.crop;
            column.image.flip_before_resize = given_.flip;
            parse_resize(column.image, value_at, value);
        } else if (name == "crop") {
            once(given_.crop, "crop");
            column.image.flip_before_crop = given_.flip;
            parse_crop(column.image, value_at, value);
        } else if (name == "flip") {
            once(given_.flip, "flip");
            if (value != "random" && value != "always")
                refuse(value_at, "bad flip", "flip=random or flip=always");
            column.image.flip =
                value == "random" ? ImageOptions::Flip::random : ImageOptions::Flip::always;
        } else {
            refuse(at, "unknown word \"" + escape(word) + "\" for an image",
                   "one of " + list(modes) + ", hwc, chw, exif, resize=, crop=, flip=");
        }
    }

    // "640x480" from `at`; the second number may be missing where `one` is set.
    std::pair<uint32_t, uint32_t> parse_size(size_t at, std::string_view value, bool one,
                                             const char* help) const {
        const size_t times = std::min(value.find('x'), value.size());
        const auto number = [&](size_t from, size_t to) {
            uint32_t out = 0;
            const char* const stop = value.data() + to;
            const auto [end, error] = std::from_chars(value.data() + from, stop, out);
            if (error != std::errc() || end != stop || out < 1 || out > 65535)
                refuse(at + from, "not a number of pixels from 1 to 65535", help);
            return out;
        };
        const uint32_t width = number(0, times);
        if (times == value.size() && one) return {width, 0};
        if (times == value.size()) refuse(at + times, "no height", help);
        return {width, number(times + 1, value.size())};
    }

    void parse_resize(ImageOptions& image, size_t at, std::string_view value) {
        static constexpr const char* help =
            "resize=N (shorter side), resize=WxH, or resize=fit:WxH";
        const bool fit = value.starts_with("fit:");
        const size_t skipped = fit ? 4 : 0;
        const auto [width, height] = parse_size(at + skipped, value.substr(skipped), !fit, help);
        image.resize = fit           ? ImageOptions::Resize::fit
                       : height == 0 ? ImageOptions::Resize::shorter
                                     : ImageOptions::Resize::exact;
        image.width = width;
        image.height = height;
    }

    void parse_crop(ImageOptions& image, size_t at, std::string_view value) {
        static constexpr const char* help = "crop=WxH (centre) or crop=random:WxH";
        const bool random = value.starts_with("random:");
        const size_t skipped = random ? 7 : 0;
        const auto [width, height] = parse_size(at + skipped, value.substr(skipped), false, help);
        image.crop = random ? ImageOptions::Crop::random : ImageOptions::Crop::centre;
        image.crop_width = width;
        image.crop_height = height;
    }

    std::string_view text_;
    // Words of the column that is being read.
    struct Given {
        bool mode = false, layout = false, exif = false;
        bool resize = false, crop = false, flip = false;
    } given_;
};

}  // namespace

DecodeSpec DecodeSpec::parse(std::string_view text) {
    return Parser(text).parse();
}

ColumnSpec column_for(std::string_view field) {
    ColumnSpec column;
    column.fields.emplace_back(field);
    const size_t dot = field.rfind('.');
    const std::string_view suffix = dot == field.npos ? field : field.substr(dot + 1);
    column.kind = find(suffixes, suffix).value_or(Kind::bytes);
    return column;
}

}  // namespace shf
