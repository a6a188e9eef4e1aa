#include "cli/document.h"

#include "cli/terminal.h"

#include <nlohmann/json.hpp>

#include <array>
#include <cstdio>
#include <limits>
#include <vector>

namespace cli {

namespace {

using Document = nlohmann::json;

// Values nested deeper than this are refused: the parser of MessagePack calls itself for each.
constexpr size_t deepest = 200;

// Receives what the parser finds, and writes the first `size` bytes of it.
class Writer final : public nlohmann::json_sax<Document> {
  public:
    explicit Writer(size_t size) : size_(size) {}

    [[nodiscard]] std::string take() { return std::move(text_); }
    // Whether the parser was told to stop because there was enough.
    [[nodiscard]] bool is_full() const { return is_full_; }
    [[nodiscard]] const std::string& fault() const { return fault_; }

    bool null() override { return value("null"); }
    bool boolean(bool value_is) override { return value(value_is ? "true" : "false"); }
    bool number_integer(number_integer_t number) override { return value(std::to_string(number)); }
    bool number_unsigned(number_unsigned_t number) override {
        return value(std::to_string(number));
    }
    bool number_float(number_float_t number, const string_t& digits) override {
        if (!digits.empty()) return value(digits);
        std::array<char, 32> made = {};
        std::snprintf(made.data(), made.size(), "%.9g", number);
        return value(made.data());
    }
    bool string(string_t& text) override { return value(quoted(text)); }
    bool binary(binary_t& bytes) override {
        return value("<" + size_text(bytes.size()) + " of bytes>");
    }
    bool start_object(size_t /*count*/) override { return open('{', '}'); }
    bool start_array(size_t /*count*/) override { return open('[', ']'); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }
    bool key(string_t& name) override {
        next_line();
        add(quoted(name) + ": ");
        has_key_ = true;
        return !is_full_;
    }
    bool parse_error(size_t at, const std::string& /*token*/,
                     const nlohmann::detail::exception& error) override {
        if (fault_.empty())
            fault_ = "byte " + std::to_string(at) + ": " + printable(reason(error.what()));
        return false;
    }

  private:
    struct Level {
        char end;
        bool is_empty = true;
    };

    // Without the name of the exception: "[json.exception.parse_error.101] parse error ...: why".
    static std::string_view reason(std::string_view text) {
        const size_t at = text.find(": ");
        return at == std::string_view::npos ? text : text.substr(at + 2);
    }
    std::string quoted(std::string_view text) const {
        // Of a long text no more than can be shown: a character is at most six bytes of JSON.
        const bool is_cut = text.size() > size_;
        std::string made = printable(json_text(text.substr(0, size_)));
        if (is_cut) made.insert(made.size() - 1, "...");
        return made;
    }
    bool value(std::string_view text) {
        if (!has_key_) next_line();
        has_key_ = false;
        add(text);
        return !is_full_;
    }
    bool open(char begin, char end) {
        if (levels_.size() == deepest) {
            fault_ = "values are nested more than " + std::to_string(deepest) + " deep";
            return false;
        }
        value(std::string(1, begin));
        levels_.push_back({end});
        return !is_full_;
    }
    bool close() {
        const Level level = levels_.back();
        levels_.pop_back();
        if (!level.is_empty) add("\n" + std::string(2 * levels_.size(), ' '));
        add(std::string(1, level.end));
        return !is_full_;
    }
    void next_line() {
        if (levels_.empty()) return;
        add((levels_.back().is_empty ? "\n" : ",\n") + std::string(2 * levels_.size(), ' '));
        levels_.back().is_empty = false;
    }
    void add(std::string_view text) {
        if (size_ == 0 || is_full_) return;  // a check shows nothing
        text_ += text;
        if (text_.size() <= size_) return;
        size_t end = size_;
        while (end > 0 && (static_cast<unsigned char>(text_[end]) & 0xC0U) == 0x80) --end;
        text_.resize(end);
        text_ += "...";
        is_full_ = true;
    }

    const size_t size_;
    std::string text_;
    std::string fault_;
    std::vector<Level> levels_;
    bool has_key_ = false;
    bool is_full_ = false;
};

bool parse(std::string_view bytes, Encoding encoding, Writer& writer) {
    const auto format = encoding == Encoding::json ? Document::input_format_t::json
                                                   : Document::input_format_t::msgpack;
    return Document::sax_parse(bytes.begin(), bytes.end(), &writer, format);
}

}  // namespace

std::optional<std::string> document_text(std::string_view bytes, Encoding encoding, size_t size) {
    Writer writer(size);
    if (!parse(bytes, encoding, writer) && !writer.is_full()) return std::nullopt;
    return writer.take();
}

std::string document_fault(std::string_view bytes, Encoding encoding) {
    Writer writer(0);
    if (parse(bytes, encoding, writer)) return {};
    return writer.fault().empty() ? "it cannot be parsed" : writer.fault();
}

}  // namespace cli
