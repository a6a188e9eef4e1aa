// What the bytes of a field are, and the first of them in a readable form.
#pragma once

#include "cli/json_line.h"
#include "cli/library.h"

#include <string>
#include <string_view>

namespace cli {

struct FieldPreview {
    const char* kind;  // "image", "array", "arrays", "text", "json", "msgpack" or "bytes"
    std::string text;  // of one line or several, without control bytes but for newlines
    JsonLine facts;    // kind, text, and numbers such as width and shape
};

// Of field `name` of a sample, which holds `data`. About `size` bytes of it are shown. Images are
// not decoded. What is not what its name says is shown as bytes or text.
FieldPreview preview_of(const shf_sample* sample, std::string_view name, shf_bytes data,
                        size_t size);

// "png" of "seg.png".
std::string_view suffix_of(std::string_view field);
// How fields with this suffix are encoded, as the option decode=auto has it.
bool is_json(std::string_view field);
bool is_msgpack(std::string_view field);

// One field of a sample, decoded as the word after the colon of the option "decode" says. Throws
// Failure. `array` is valid as long as the result.
using Batch = std::unique_ptr<shf_batch, Releaser<shf_batch_unref>>;
Batch decoded_field(const shf_sample* sample, std::string_view name, const std::string& how,
                    shf_array& array);

// Whether bytes are text that a terminal may have: UTF-8 without control bytes but for tabs and
// line ends. They may end within a character.
bool is_text(std::string_view bytes);

}  // namespace cli
