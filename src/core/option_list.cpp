// Many options in one text.
#include "core/error.h"
#include "core/options.h"
#include "core/trimmed.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace shf {

namespace {

constexpr std::string_view blanks = " \t\r\n";
constexpr size_t npos = std::string_view::npos;

// Reads "name=value,name='a, b'" from front to back.
class OptionList {
  public:
    explicit OptionList(std::string_view text) : text_(text) {}

    // Whether there is one more setting. Also true where there has to be one: behind a comma.
    bool more() {
        skip_blanks();
        return at_ < text_.size() || after_comma_;
    }

    std::pair<std::string_view, std::string> next() {
        skip_blanks();
        const size_t end = std::min(text_.find_first_of("=,", at_), text_.size());
        const std::string_view name = trimmed(text_.substr(at_, end - at_), blanks);
        if (name.empty()) refuse(at_, "the name of an option is missing");
        if (end == text_.size() || text_[end] == ',')
            refuse(end, "no \"=\" after \"" + escape(name) + "\"");
        at_ = end + 1;
        skip_blanks();
        const bool quoted = at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"');
        std::string value = quoted ? quoted_value() : plain_value();
        after_comma_ = at_ < text_.size();
        if (after_comma_) ++at_;
        return {name, std::move(value)};
    }

  private:
    void skip_blanks() { at_ = std::min(text_.find_first_not_of(blanks, at_), text_.size()); }

    // Up to the next comma, or the end.
    std::string plain_value() {
        const size_t end = std::min(text_.find(',', at_), text_.size());
        const size_t start = std::exchange(at_, end);
        return std::string(trimmed(text_.substr(start, end - start), blanks));
    }

    // Up to the closing quote; two quotes are one that belongs to the value.
    std::string quoted_value() {
        const size_t open = at_;
        const char quote = text_[at_++];
        std::string value;
        for (;;) {
            const size_t end = text_.find(quote, at_);
            if (end == npos) refuse(open, "the quote is not closed");
            value += text_.substr(at_, end - at_);
            at_ = end + 1;
            if (at_ == text_.size() || text_[at_] != quote) break;
            value += quote;
            ++at_;
        }
        skip_blanks();
        if (at_ < text_.size() && text_[at_] != ',') refuse(at_, "no comma after a quoted value");
        return value;
    }

    [[noreturn]] void refuse(size_t at, const std::string& cause) const {
        throw Error(SHF_E_USAGE,
                    "options: character " + std::to_string(at + 1) + ": " + cause + " in \"" +
                        escape(text_.substr(0, at)) + " >>> " + escape(text_.substr(at)) + "\"",
                    "give name=value,name=value,...; a value with a comma is quoted, as in "
                    "shuffle=1000,decode='jpg, cls:int'");
    }

    std::string_view text_;
    size_t at_ = 0;
    bool after_comma_ = false;
};

}  // namespace

void Options::set_all(std::string_view text) {
    Options changed = *this;
    OptionList list(text);
    while (list.more()) {
        const auto [name, value] = list.next();
        changed.set(name, value);
    }
    *this = std::move(changed);
}

}  // namespace shf
