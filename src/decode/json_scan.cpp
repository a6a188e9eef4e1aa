#include "decode/json_scan.h"

#include "core/error.h"

#include <nlohmann/json.hpp>

#include <array>

namespace shf {

namespace {

constexpr std::array<bool, 256> is_structure = [] {
    std::array<bool, 256> table{};
    for (const char c : {'"', '[', ']', '{', '}'}) table[static_cast<uint8_t>(c)] = true;
    return table;
}();

}  // namespace

JsonScan::JsonScan(std::span<const uint8_t> field, const char* subject, const char* help)
    : text_(reinterpret_cast<const char*>(field.data()), field.size()),
      subject_(subject),
      help_(help) {
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    if (text_.starts_with(byte_order_mark)) at_ = byte_order_mark.size();
}

void JsonScan::fail(const std::string& wanted) const {
    constexpr size_t most = 24;
    const std::string there = at_ == text_.size()
                                  ? "the field ends"
                                  : "there is \"" + escape(text_.substr(at_, most)) + "\"";
    throw Error(SHF_E_FORMAT,
                std::string(subject_) + ": " + there + " at byte " + std::to_string(at_) +
                    " of the field, where " + wanted + " should be",
                help_);
}

void JsonScan::expect_end() {
    skip_blanks();
    if (at_ != text_.size()) fail("the end");
}

bool JsonScan::name_is(const std::string& wanted) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != '"') fail("a name in quotes");
    const size_t begin = at_;
    skip_text();
    const std::string_view quoted = text_.substr(begin, at_ - begin);
    if (quoted.find('\\') == quoted.npos) return quoted.substr(1, quoted.size() - 2) == wanted;
    const nlohmann::json name = nlohmann::json::parse(quoted, nullptr, false);
    if (!name.is_string()) {
        at_ = begin;
        fail("a name in quotes");
    }
    return name.get_ref<const std::string&>() == wanted;
}

void JsonScan::skip_value() {
    const char first = next();
    if (first == '"') return skip_text();
    if (first != '[' && first != '{') return skip_word();
    std::string open;  // what closes the lists and objects that are open
    for (; at_ < text_.size(); ++at_) {
        const char c = text_[at_];
        if (!is_structure[static_cast<uint8_t>(c)]) continue;
        if (c == '"') {
            skip_text();
            --at_;
        } else if (c == '[' || c == '{') {
            open += c == '[' ? ']' : '}';
        } else {
            if (open.back() != c) fail(std::string(1, open.back()));
            open.pop_back();
            if (open.empty()) return void(++at_);
        }
    }
    fail("the end of a list or an object");
}

// A number, true, false, null, and NaN as Python writes it.
void JsonScan::skip_word() {
    const size_t begin = at_;
    while (at_ < text_.size() &&
           std::string_view(" \n\r\t,]}:[{\"").find(text_[at_]) == std::string_view::npos)
        ++at_;
    if (at_ == begin) fail("a value");
}

void JsonScan::skip_text() {
    for (++at_; at_ < text_.size(); ++at_) {
        if (text_[at_] == '"') return void(++at_);
        if (text_[at_] == '\\') ++at_;
    }
    at_ = text_.size();
    fail("the end of a text");
}

}  // namespace shf
