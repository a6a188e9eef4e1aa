#include "batch/box_words.h"

#include "batch/words.h"
#include "core/error.h"
#include "core/options.h"

#include <algorithm>
#include <utility>

namespace shf {

namespace {

constexpr const char* box_image_help = "of=jpg, a column of images that is listed before the boxes";

constexpr std::pair<std::string_view, BoxOptions::Format> box_formats[] = {
    {"xyxy", BoxOptions::Format::xyxy},
    {"xywh", BoxOptions::Format::xywh},
    {"cxcywh", BoxOptions::Format::cxcywh},
};

}  // namespace

void BoxWords::refuse(size_t at, const std::string& cause, const std::string& help) const {
    refuse_text("decode", text_, at, cause, help);
}

void BoxWords::once(bool& given, size_t at, const char* what) const {
    if (std::exchange(given, true))
        refuse(at, std::string("a second ") + what + " for boxes", "each of them once");
}

void BoxWords::take(size_t at, std::string_view word) {
    const auto [name, value, value_at] = split_word(at, word);
    if (const auto format = find_word(box_formats, word)) {
        once(has_format_, at, "format");
        boxes_.format = *format;
    } else if (word == "relative") {
        once(boxes_.relative, at, "relative");
    } else if (name == "path") {
        once(has_path_, at, "path");
        take_path(value_at, value);
    } else if (name == "of") {
        once(has_image_, at, "image");
        if (value.empty()) refuse(value_at, "no column of images", box_image_help);
        image_ = value;
        image_at_ = value_at;
    } else {
        refuse(at, "unknown word \"" + escape(word) + "\" for boxes",
               "one of " + list_words(box_formats) + ", relative, path=, of=");
    }
}

void BoxWords::take_path(size_t at, std::string_view path) {
    for (size_t from = 0; from <= path.size();) {
        const size_t to = std::min(path.find('.', from), path.size());
        if (to == from)
            refuse(at + from, "a name of the path is empty", "names with dots: path=objects.bbox");
        boxes_.path.emplace_back(path.substr(from, to - from));
        from = to + 1;
    }
}

void BoxWords::end(size_t at) const {
    if (!has_image_)
        refuse(at, "boxes have the geometry of an image, and none is named", box_image_help);
}

}  // namespace shf
