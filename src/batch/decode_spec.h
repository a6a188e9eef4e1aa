// What becomes of which field: the option "decode".
//
//     jpg;png:image/rgb8/chw/resize=256x256, cls:int, json:bytes
//
// Columns are separated by commas. A column has the name of its field; several names, separated by
// semicolons, are alternatives, and the column has the first one. After the colon is what the
// field becomes, and after slashes how. Without a colon it is what the suffix says. "auto" is every
// field of the first sample, each as its suffix says. Fields whose names end in .gz or .zst are
// unpacked first, whatever they become, and the suffix is the one before that.
#pragma once

#include "audio/audio_options.h"
#include "decode/box_options.h"
#include "image/image_options.h"
#include "video/video_options.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

// How the rows of a batch are mixed with one another: MixUp and CutMix.
struct RowMixing {
    // The shares are drawn from Beta(alpha, alpha). 0: not this one.
    double mixup = 0, cutmix = 0;

    [[nodiscard]] bool any() const { return mixup > 0 || cutmix > 0; }
    bool operator==(const RowMixing&) const = default;
};

struct ColumnSpec {
    // Bytes of any length, and what a binding makes of them, or arrays.
    enum class Kind : uint8_t {
        bytes,
        text,
        json,
        msgpack,
        integer,
        real,
        npy,
        npz,
        ten,
        safetensors,
        list,
        image,
        audio,
        video,
        boxes
    };

    std::vector<std::string> fields;  // the first one names the column
    Kind kind = Kind::bytes;
    // Of an image, or each frame; of boxes and of a sound that is cut to a clip, those of their
    // image and video.
    ImageOptions image;
    AudioOptions audio;       // of a sound
    VideoOptions video;       // of a video; of a sound that is cut to a clip, those of its video
    BoxOptions boxes;         // of boxes
    size_t image_column = 0;  // of boxes: that of their image, which is listed before them
    // Of an npz, the JSON object that has the list, or safetensors. Empty: the only one.
    std::string member;
    std::optional<uint64_t> part;  // the number of an array in ten; none: the only one
    std::string label;             // the name of the column, when it is not that of the field
    bool compressed = false;       // bytes as they are stored, of a field that is compressed, too
    bool records = false;          // no field: what was chosen for the other columns, as JSON
    RowMixing mixing;              // of the images that are mixed
    bool pairs = false;            // no field: the row that each row is mixed with

    [[nodiscard]] const std::string& name() const { return label.empty() ? fields[0] : label; }
    bool operator==(const ColumnSpec&) const = default;
};

struct DecodeSpec {
    bool automatic = false;  // columns come from the first sample
    std::vector<ColumnSpec> columns;

    bool operator==(const DecodeSpec&) const = default;
    // Throws Error(USAGE) that points at the character.
    static DecodeSpec parse(std::string_view text);
};

// The name of a field that was decoded for this column elsewhere: see Schema::of_rows. Names of
// columns that differ have names here that do.
std::string row_field_of(const ColumnSpec& spec);

// The column for a field of this name by itself: images, npy, cls, txt, json, ...; bytes else. Of
// "json.gz" it is that of "json".
ColumnSpec column_for(std::string_view field);

}  // namespace shf
