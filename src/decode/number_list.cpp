#include "decode/number_list.h"

#include "core/error.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

namespace shf {

namespace {

// Reads the text once, from front to back. What is not wanted of an object is checked no further
// than to know where it ends.
class ListReader {
  public:
    explicit ListReader(std::span<const uint8_t> field)
        : text_(reinterpret_cast<const char*>(field.data()), field.size()) {}

    // Where the list begins that is called `member`, or of the whole field without a name. All of
    // the object was read then.
    size_t find(const std::string& member) {
        skip_blanks();
        if (member.empty()) return at_;
        expect('{', "a JSON object");
        constexpr size_t nowhere = std::string_view::npos;
        size_t found = nowhere;
        for (bool first = true; !accept('}'); first = false) {
            if (!first) expect(',', "a comma, or the end of the object");
            skip_blanks();
            const std::string_view key = string();
            expect(':', "a colon");
            skip_blanks();
            if (is_name(key, member)) found = at_;
            skip_value();
        }
        expect_end();
        if (found == nowhere)
            throw Error(SHF_E_FORMAT, "the JSON object has no member \"" + escape(member) + "\"",
                        "name one that it has: list/NAME");
        return found;
    }

    // Calls take(number) for each number of the list that begins at `begin`.
    template <typename Take>
    void read(size_t begin, Take take) {
        at_ = begin;
        expect('[', "a JSON list");
        if (accept(']')) return;
        do take(whole_number());
        while (accept(','));
        expect(']', "a comma, or the end of the list");
    }

    void expect_end() {
        skip_blanks();
        if (at_ != text_.size()) fail("the end");
    }

  private:
    // `wanted` at the place that was reached.
    [[noreturn]] void fail(const std::string& wanted) const {
        constexpr size_t most = 24;
        const std::string there = at_ == text_.size()
                                      ? "the field ends"
                                      : "there is \"" + escape(text_.substr(at_, most)) + "\"";
        throw Error(SHF_E_FORMAT,
                    "no list of whole numbers: " + there + " at byte " + std::to_string(at_) +
                        " of the field, where " + wanted + " should be",
                    "correct the field, or give it another kind in decode");
    }

    void skip_blanks() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' ||
                                      text_[at_] == '\t' || text_[at_] == '\r'))
            ++at_;
    }
    bool accept(char c) {
        skip_blanks();
        if (at_ == text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    void expect(char c, const char* wanted) {
        if (!accept(c)) fail(wanted);
    }

    int64_t whole_number() {
        skip_blanks();
        const size_t begin = at_;
        const bool negative = at_ < text_.size() && text_[at_] == '-';
        if (negative) ++at_;
        const size_t first = at_;
        uint64_t value = 0;
        bool fits = true;
        for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
            fits = fits && !__builtin_mul_overflow(value, uint64_t{10}, &value) &&
                   !__builtin_add_overflow(value, static_cast<uint64_t>(text_[at_] - '0'), &value);
        const bool more = at_ < text_.size() &&
                          std::string_view(".eE").find(text_[at_]) != std::string_view::npos;
        const bool zeros = at_ - first > 1 && text_[first] == '0';
        constexpr auto most = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
        if (at_ == first || more || zeros || !fits || value > most + (negative ? 1 : 0)) {
            at_ = begin;
            fail("a whole number of 64 bits");
        }
        return static_cast<int64_t>(negative ? 0 - value : value);
    }

    // Of a key: with its quotes.
    std::string_view string() {
        const size_t begin = at_;
        if (at_ == text_.size() || text_[at_] != '"') fail("a string");
        for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_)
            if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
        if (at_ == text_.size()) fail("the end of a string");
        return text_.substr(begin, ++at_ - begin);
    }

    static bool is_name(std::string_view key, const std::string& member) {
        if (key.find('\\') == key.npos) return key.substr(1, key.size() - 2) == member;
        const auto text = nlohmann::json::parse(key, nullptr, false);
        return text.is_string() && text.get_ref<const std::string&>() == member;
    }

    // A value of any kind; of nested ones the brackets are matched.
    void skip_value() {
        std::string open;
        do {
            skip_blanks();
            if (at_ == text_.size()) fail("the end of the object");
            const char c = text_[at_];
            if (c == '"') {
                string();
            } else if (c == '{' || c == '[') {
                open += c;
                ++at_;
            } else if (c == '}' || c == ']') {
                if (open.empty() || open.back() != (c == '}' ? '{' : '[')) fail("a value");
                open.pop_back();
                ++at_;
            } else if ((c == ',' || c == ':') && !open.empty()) {
                ++at_;
            } else {
                const size_t end =
                    std::min(text_.find_first_of(" \n\t\r,:{}[]\"", at_), text_.size());
                if (end == at_) fail("a value");
                at_ = end;
            }
        } while (!open.empty());
    }

    const std::string_view text_;
    size_t at_ = 0;
};

class ListDecoder final : public Decoder {
  public:
    ListDecoder(std::string member, uint64_t max_decoded)
        : member_(std::move(member)), max_decoded_(max_decoded) {}

    [[nodiscard]] Measured measure(std::span<const uint8_t> field,
                                   uint64_t /*random*/) const override {
        ArrayType type{.dtype = DType::i64, .ndim = 1};
        int64_t count = 0;
        read(field, [&](int64_t) { ++count; });
        type.shape[0] = count;
        if (type.bytes() > max_decoded_)
            throw Error(SHF_E_LIMIT,
                        "a list of " + plural(type.elements(), "number") +
                            " is larger than max_decoded=" + std::to_string(max_decoded_),
                        "raise max_decoded");
        // Handing it to another thread takes as long as to read so few.
        constexpr int64_t few = 512;
        return {.type = type, .cheap = count <= few};
    }

    void decode(std::span<const uint8_t> field, uint64_t /*random*/, const ArrayType& /*type*/,
                std::span<uint8_t> out, DecodeScratch& /*scratch*/) const override {
        uint8_t* to = out.data();
        read(field, [&](int64_t number) {
            std::memcpy(to, &number, sizeof number);
            to += sizeof number;
        });
    }

  private:
    template <typename Take>
    void read(std::span<const uint8_t> field, Take take) const {
        ListReader reader(field);
        reader.read(reader.find(member_), take);
        if (member_.empty()) reader.expect_end();
    }

    const std::string member_;
    const uint64_t max_decoded_;
};

}  // namespace

std::unique_ptr<Decoder> list_decoder(std::string member, uint64_t max_decoded) {
    return std::make_unique<ListDecoder>(std::move(member), max_decoded);
}

}  // namespace shf
