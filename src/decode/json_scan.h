// The parts of JSON that readers of one kind of value share. A full JSON parser would convert every
// other value too, such as each number of a polygon that nobody asked for: it takes ten times as
// long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace shf {

// A place in a text, which moves from front to back.
class JsonScan {
  public:
    // Faults begin with `subject` and end with `help`. A byte order mark is skipped.
    JsonScan(std::span<const uint8_t> field, const char* subject, const char* help);

    // Throws Error(FORMAT): what is here, and that `wanted` should be here.
    [[noreturn]] void fail(const std::string& wanted) const;

    // The next byte that is no blank. Fails at the end.
    char next() {
        skip_blanks();
        if (at_ == text_.size()) fail("a value");
        return text_[at_];
    }
    // Moves behind the next byte that is no blank, if it is `c`.
    bool accept(char c) {
        skip_blanks();
        if (at_ == text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    void expect(char c, const char* wanted) {
        if (!accept(c)) fail(wanted);
    }
    void expect_end();

    // Reads a list: calls element() for each element.
    template <typename Element>
    void read_list(const Element& element) {
        expect('[', "a JSON list");
        if (accept(']')) return;
        do element();
        while (accept(','));
        expect(']', "a comma, or the end of the list");
    }
    // Of an object: calls member(is_wanted) at each of its values; is_wanted says whether its name
    // is `wanted`.
    template <typename Member>
    void read_object(const std::string& wanted, const Member& member) {
        expect('{', "a JSON object");
        if (accept('}')) return;
        do {
            const bool is_wanted = name_is(wanted);
            expect(':', "a colon");
            member(is_wanted);
        } while (accept(','));
        expect('}', "a comma, or the end of the object");
    }
    // Moves behind a value of any kind. Brackets and quotes are followed, and nothing else is
    // looked at.
    void skip_value();

    [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }
    [[nodiscard]] size_t at() const { return at_; }
    void move_to(size_t at) { at_ = at; }

  private:
    void skip_blanks() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' ||
                                      text_[at_] == '\t' || text_[at_] == '\r'))
            ++at_;
    }
    bool name_is(const std::string& wanted);
    void skip_text();
    void skip_word();

    const std::string_view text_;
    const char* const subject_;
    const char* const help_;
    size_t at_ = 0;
};

}  // namespace shf
