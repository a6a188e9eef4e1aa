#include "batch/decode_spec.h"

#include "batch/audio_words.h"
#include "batch/box_words.h"
#include "batch/image_words.h"
#include "batch/mixed_rows.h"
#include "batch/video_words.h"
#include "batch/words.h"
#include "core/error.h"
#include "core/options.h"
#include "decode/field_unpacker.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <utility>

namespace shf {

namespace {

using Kind = ColumnSpec::Kind;

// What was chosen for the columns of a row.
constexpr std::string_view record_column = "__augment__";

constexpr std::pair<std::string_view, Kind> kinds[] = {
    {"bytes", Kind::bytes}, {"text", Kind::text},
    {"json", Kind::json},   {"msgpack", Kind::msgpack},
    {"int", Kind::integer}, {"float", Kind::real},
    {"npy", Kind::npy},     {"npz", Kind::npz},
    {"ten", Kind::ten},     {"safetensors", Kind::safetensors},
    {"list", Kind::list},   {"image", Kind::image},
    {"audio", Kind::audio}, {"video", Kind::video},
    {"boxes", Kind::boxes},
};

// By the part of the name after its last dot, as webdataset has them.
constexpr std::pair<std::string_view, Kind> suffixes[] = {
    {"jpg", Kind::image},     {"jpeg", Kind::image},  {"png", Kind::image},
    {"webp", Kind::image},    {"gif", Kind::image},   {"tif", Kind::image},
    {"tiff", Kind::image},    {"jxl", Kind::image},   {"avif", Kind::image},
    {"npy", Kind::npy},       {"cls", Kind::integer}, {"cls2", Kind::integer},
    {"index", Kind::integer}, {"inx", Kind::integer}, {"id", Kind::integer},
    {"txt", Kind::text},      {"text", Kind::text},   {"transcript", Kind::text},
    {"json", Kind::json},     {"jsn", Kind::json},    {"flac", Kind::audio},
    {"wav", Kind::audio},     {"mp3", Kind::audio},   {"opus", Kind::audio},
    {"mp", Kind::msgpack},    {"msg", Kind::msgpack}, {"msgpack", Kind::msgpack},
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
            for (ColumnSpec& column : parse_column(begin, end, spec.columns)) {
                join_sound(column, begin, spec.columns);
                for (const ColumnSpec& other : spec.columns)
                    if (row_field_of(other) == row_field_of(column))
                        refuse(begin, "column \"" + escape(column.name()) + "\" is there twice",
                               "each field once");
                spec.columns.push_back(std::move(column));
            }
            begin = end + 1;
        }
        if (mixed_at_) add_pairs(spec);
        return spec;
    }

  private:
    // The sound of a field whose pictures are a column before it is a column of its own, and may
    // be cut to their clip.
    void join_sound(ColumnSpec& column, size_t at, std::span<const ColumnSpec> before) const {
        if (column.kind != Kind::audio) return;
        const auto video = std::find_if(before.begin(), before.end(), [&](const ColumnSpec& other) {
            return other.kind == Kind::video && other.name() == column.name();
        });
        if (video != before.end()) column.label = column.fields[0] + ".audio";
        if (column.audio.crop != AudioOptions::Crop::clip) return;
        if (video == before.end() || video->fields != column.fields)
            refuse(at,
                   "a sound is cut to the clip of its video, and none of this field is before it",
                   "for example mp4:video/clip=random:16, mp4:audio/crop=clip:2s; a video with "
                   "views= has several clips");
        column.video = video->video;
        column.image = video->image;
    }

    [[noreturn]] void refuse(size_t at, const std::string& cause, const std::string& help) const {
        refuse_text("decode", text_, at, cause, help);
    }

    // A stretch without the blanks around it, and where it begins.
    [[nodiscard]] std::pair<size_t, std::string_view> trimmed(size_t begin, size_t end) const {
        while (begin < end && (text_[begin] == ' ' || text_[begin] == '\n')) ++begin;
        while (end > begin && (text_[end - 1] == ' ' || text_[end - 1] == '\n')) --end;
        return {begin, text_.substr(begin, end - begin)};
    }

    // One column, or one for each view, or those of boxes. `before`: the columns before it.
    std::vector<ColumnSpec> parse_column(size_t begin, size_t end,
                                         std::span<const ColumnSpec> before) {
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
        if (std::find(fields.begin(), fields.end(), record_column) != fields.end()) {
            if (colon != end || fields.size() > 1)
                refuse(begin, "this column is of no field, and has no kind",
                       "\"__augment__\" alone between commas");
            ColumnSpec column;
            column.fields = std::move(fields);
            column.kind = Kind::json;
            column.records = true;
            return {std::move(column)};
        }
        if (colon == end) {
            ColumnSpec column = column_for(fields[0]);
            column.fields = std::move(fields);
            return {std::move(column)};
        }
        ColumnSpec column;
        column.fields = std::move(fields);
        ImageWords image(text_);
        AudioWords audio(text_, column.audio);
        VideoWords video(text_, column.video);
        BoxWords boxes(text_, column.boxes);
        bool first = true;
        for (size_t from = colon + 1; from <= end;) {
            size_t to = std::min(text_.find('/', from), end);
            // Names of tensors may have slashes.
            if (column.kind == Kind::safetensors) to = end;
            const auto [at, word] = trimmed(from, to);
            if (std::exchange(first, false)) {
                const auto kind = find_word(kinds, word);
                if (!kind)
                    refuse(at, "unknown kind \"" + escape(word) + "\"",
                           "one of " + list_words(kinds));
                column.kind = *kind;
                if (*kind == Kind::video) image.of_video();
            } else if (column.kind == Kind::audio) {
                audio.take(at, word);
            } else if (column.kind == Kind::video) {
                if (!video.take(at, word)) image.add(at, word);
            } else if (column.kind == Kind::boxes) {
                boxes.take(at, word);
            } else if (column.kind == Kind::ten || column.kind == Kind::safetensors) {
                name_array(column, at, word);
            } else {
                modify(column, image, at, word);
            }
            from = to + 1;
        }
        if (column.kind == Kind::npz && column.member.empty())
            refuse(end, "no member of the npz", "npz/NAME");
        // Several lists of one object are columns of their own, as are arrays of one file.
        if ((column.kind == Kind::list || column.kind == Kind::safetensors) &&
            !column.member.empty())
            column.label = column.fields[0] + '.' + column.member;
        if (column.part) column.label = column.fields[0] + '.' + std::to_string(*column.part);
        if (column.kind == Kind::audio) audio.end(end);
        if (column.kind == Kind::video) video.end();
        if (column.kind == Kind::image || column.kind == Kind::video) column.image = image.finish();
        column.mixing = image.mixing();
        if (column.mixing.any()) {
            if (mixed_at_)
                refuse(begin, "a second column of images that are mixed",
                       "one of them: all columns of a batch are mixed with the same rows");
            mixed_at_ = begin;
        }
        if (column.kind == Kind::boxes) {
            boxes.end(end);
            return box_columns(std::move(column), boxes, before);
        }
        if (image.views() == 0) return {std::move(column)};
        std::vector<ColumnSpec> views(image.views(), column);
        for (uint32_t view = 0; view < views.size(); ++view) {
            views[view].image.view = view;
            views[view].label = column.fields[0] + '.' + std::to_string(view);
        }
        return views;
    }

    // Boxes, and the numbers that those which are left have in their field.
    [[nodiscard]] std::vector<ColumnSpec> box_columns(ColumnSpec column, const BoxWords& words,
                                                      std::span<const ColumnSpec> before) const {
        const auto image = std::find_if(before.begin(), before.end(), [&](const ColumnSpec& other) {
            return other.kind == Kind::image && other.name() == words.image();
        });
        if (image == before.end())
            refuse(words.image_at(), "no column of images before this one is called so",
                   "of=jpg names a column that is \"jpg:image/...\"");
        if (image->image.augment.set != ImageOptions::Augment::Set::none)
            refuse(words.image_at(), "boxes are not moved by randaugment and trivialaugment",
                   "leave these out of the words of the image");
        column.image = image->image;
        column.image_column = static_cast<size_t>(image - before.begin());
        // One of several views has its boxes.
        const std::string view =
            image->label.empty() ? "" : '.' + std::to_string(image->image.view);
        std::vector<ColumnSpec> columns(2, column);
        columns[0].label = column.fields[0] + ".boxes" + view;
        columns[1].label = column.fields[0] + ".kept" + view;
        columns[1].boxes.result = BoxOptions::Result::kept;
        return columns;
    }

    // Behind all columns: what it takes to mix rows.
    void add_pairs(DecodeSpec& spec) const {
        for (const ColumnSpec& other : spec.columns)
            for (const std::string_view name : {index_column, weight_column, box_column})
                if (other.name() == name)
                    refuse(*mixed_at_, "column \"" + std::string(name) + "\" is there twice",
                           "no field with the name of a column of mixup and cutmix");
        ColumnSpec column;
        column.fields.emplace_back(index_column);
        column.kind = Kind::integer;
        column.pairs = true;
        spec.columns.push_back(std::move(column));
    }

    // Which array of a file with several is wanted.
    void name_array(ColumnSpec& column, size_t at, std::string_view word) const {
        const auto [name, value, value_at] = split_word(at, word);
        if (column.kind == Kind::safetensors) {
            if (name != "tensor" || value.empty())
                refuse(at, "not the name of a tensor", "safetensors/tensor=NAME");
            column.member = value;
            return;
        }
        uint64_t part = 0;
        const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), part);
        if (name != "part" || column.part || error != std::errc() ||
            end != value.data() + value.size())
            refuse(at, "not the number of an array", "ten/part=0 is the first array of the field");
        column.part = part;
    }

    // What stands after a slash.
    void modify(ColumnSpec& column, ImageWords& image, size_t at, std::string_view word) const {
        if (column.kind == Kind::image) return image.add(at, word);
        if (column.kind == Kind::bytes && word == "compressed" && !column.compressed) {
            if (std::all_of(column.fields.begin(), column.fields.end(), [](const auto& field) {
                    return field_codec(field).first == FieldCodec::none;
                }))
                refuse(at, "no name of these fields says that they are compressed",
                       "names that do end in .gz or .zst");
            column.compressed = true;
            return;
        }
        const bool of_member = column.kind == Kind::npz || column.kind == Kind::list;
        if (!of_member || !column.member.empty() || word.empty())
            refuse(at, "nothing may stand after this kind", "a comma before the next field");
        column.member = word;
    }

    std::string_view text_;
    std::optional<size_t> mixed_at_;  // the column whose images are mixed
};

}  // namespace

DecodeSpec DecodeSpec::parse(std::string_view text) {
    return Parser(text).parse();
}

std::string row_field_of(const ColumnSpec& spec) {
    std::string name = spec.name();
    std::replace(name.begin(), name.end(), '/', ':');  // names of fields have none
    return name;
}

ColumnSpec column_for(std::string_view field) {
    ColumnSpec column;
    column.fields.emplace_back(field);
    const std::string_view name = field_codec(field).second;
    const std::string_view suffix = name.substr(name.rfind('.') + 1);  // all of it without a dot
    column.kind = find_word(suffixes, suffix).value_or(Kind::bytes);
    return column;
}

}  // namespace shf
