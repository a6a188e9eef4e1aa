#include "cli/field_preview.h"

#include "cli/array_text.h"
#include "cli/document.h"
#include "cli/image_header.h"
#include "cli/terminal.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace cli {

namespace {

template <size_t N>
bool is_one_of(std::string_view suffix, const std::array<std::string_view, N>& all) {
    return std::find(all.begin(), all.end(), suffix) != all.end();
}

FieldPreview made(const char* kind, std::string text) {
    FieldPreview preview{kind, std::move(text), {}};
    preview.facts.text("kind", kind).text("text", preview.text);
    return preview;
}

// Without a character that is cut at the end.
std::string_view first_of(std::string_view bytes, size_t size) {
    if (bytes.size() <= size) return bytes;
    while (size > 0 && (static_cast<unsigned char>(bytes[size]) & 0xC0U) == 0x80) --size;
    return bytes.substr(0, size);
}

std::string text_of(std::string_view bytes, size_t size) {
    const std::string_view first = first_of(bytes, size);
    std::string made;
    for (const char c : first)
        if (c != '\r') made += c == '\t' ? ' ' : c;
    while (!made.empty() && made.back() == '\n') made.pop_back();
    return made + (first.size() < bytes.size() ? "..." : "");
}

std::string hex_start(std::string_view bytes) {
    constexpr size_t shown = 20;
    std::string hex;
    for (const char c : bytes.substr(0, shown)) {
        std::array<char, 4> digits = {};
        std::snprintf(digits.data(), digits.size(), "%02x ", static_cast<unsigned char>(c));
        hex += digits.data();
    }
    if (bytes.size() > shown) return hex + "...";
    if (!hex.empty()) hex.pop_back();
    return hex;
}

std::optional<FieldPreview> image_preview(std::string_view bytes) {
    const auto image = image_header(bytes);
    if (!image) return std::nullopt;
    FieldPreview preview =
        made("image", std::string(image->format) + ", " + std::to_string(image->width) + " x " +
                          std::to_string(image->height));
    preview.facts.text("format", image->format)
        .number("width", image->width)
        .number("height", image->height);
    return preview;
}

std::optional<FieldPreview> array_preview(const shf_sample* sample, std::string_view name) {
    shf_array array = {};
    try {
        const Batch batch = decoded_field(sample, name, "npy", array);
        const ArrayText row(array);
        FieldPreview preview = made("array", row.dtype + " " + row.shape + ": " + row.values);
        preview.facts.text("dtype", row.dtype).raw("shape", row.json_shape);
        return preview;
    } catch (const Failure&) {
        return std::nullopt;
    }
}

std::optional<FieldPreview> arrays_preview(shf_bytes data, size_t size) {
    shf_archive* opened = nullptr;
    if (shf_archive_open_memory(&opened, data.data, data.size, nullptr, nullptr) != SHF_OK)
        return std::nullopt;
    const Archive archive(opened);
    std::string text;
    for (uint64_t i = 0; i < shf_archive_member_count(opened) && text.size() < size; ++i) {
        shf_bytes name;
        shf_archive_name(opened, i, &name);
        if (!text.empty()) text += '\n';
        text += printable(cli::text(name));
        text += ' ';
        text += size_text(shf_archive_info(opened, i, SHF_MEMBER_SIZE));
    }
    return made("arrays", text);
}

std::optional<FieldPreview> document_preview(std::string_view bytes, Encoding encoding,
                                             size_t size) {
    auto text = document_text(bytes, encoding, size);
    if (!text) return std::nullopt;
    return made(encoding == Encoding::json ? "json" : "msgpack", std::move(*text));
}

}  // namespace

std::string_view suffix_of(std::string_view field) {
    return field.substr(field.rfind('.') + 1);
}

bool is_json(std::string_view field) {
    return is_one_of(suffix_of(field), std::array<std::string_view, 2>{"json", "jsn"});
}

bool is_msgpack(std::string_view field) {
    return is_one_of(suffix_of(field), std::array<std::string_view, 3>{"mp", "msg", "msgpack"});
}

bool is_text(std::string_view bytes) {
    std::string line(bytes);
    std::replace_if(
        line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t' || c == '\r'; }, ' ');
    return printable(line) == line;
}

Batch decoded_field(const shf_sample* sample, std::string_view name, const std::string& how,
                    shf_array& array) {
    const bool is_plain = std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    });
    if (!is_plain) throw Failure(failed, "field " + printable(name) + " has no name for decode");
    const Options options(shf_options_new());
    call(shf_options_set, options.get(), "decode", (std::string(name) + ":" + how).c_str());
    call(shf_options_set, options.get(), "decode_threads", "1");
    // The library takes samples that it may keep a reference to; it does not change them.
    std::array<shf_sample*, 1> one = {const_cast<shf_sample*>(sample)};
    shf_batch* made = nullptr;
    call(shf_batch_make, &made, one.data(), one.size(), options.get());
    Batch batch(made);
    shf_batch_column(made, 0, nullptr, &array);
    return batch;
}

FieldPreview preview_of(const shf_sample* sample, std::string_view name, shf_bytes data,
                        size_t size) {
    const std::string_view bytes = text(data);
    const std::string_view suffix = suffix_of(name);
    std::optional<FieldPreview> found = image_preview(bytes);
    if (!found && (suffix == "npy" || bytes.starts_with("\x93NUMPY")))
        found = array_preview(sample, name);
    if (!found && suffix == "npz") found = arrays_preview(data, size);
    if (!found && is_json(name)) found = document_preview(bytes, Encoding::json, size);
    if (!found && is_msgpack(name)) found = document_preview(bytes, Encoding::msgpack, size);
    if (!found && is_text(first_of(bytes, size))) found = made("text", text_of(bytes, size));
    return found ? std::move(*found) : made("bytes", hex_start(bytes));
}

}  // namespace cli
