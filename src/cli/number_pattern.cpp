#include "cli/number_pattern.h"

#include "cli/library.h"
#include "cli/terminal.h"

namespace cli {

NumberPattern::NumberPattern(const std::string& pattern) {
    const auto bad = [&] {
        throw Failure(wrong_command_line, printable(pattern) +
                                              " is no pattern; help: it has one number, such as "
                                              "%06d, and %% for a percent sign");
    };
    bool has_number = false;
    for (size_t i = 0; i < pattern.size(); ++i) {
        std::string& part = has_number ? after_ : before_;
        if (pattern[i] != '%') {
            part += pattern[i];
            continue;
        }
        if (pattern.substr(i, 2) == "%%") {
            part += '%';
            ++i;
            continue;
        }
        const size_t end = pattern.find('d', i);
        const std::string width =
            end == std::string::npos ? "?" : pattern.substr(i + 1, end - i - 1);
        const bool is_width =
            width.empty() || (width.size() <= 3 && width[0] == '0' &&
                              width.find_first_not_of("0123456789") == std::string::npos);
        if (has_number || !is_width) bad();
        for (const char digit : width) width_ = width_ * 10 + static_cast<size_t>(digit - '0');
        has_number = true;
        i = end;
    }
    if (!has_number) bad();
}

std::string NumberPattern::text(uint64_t number) const {
    const std::string digits = std::to_string(number);
    const size_t zeros = width_ > digits.size() ? width_ - digits.size() : 0;
    return before_ + std::string(zeros, '0') + digits + after_;
}

}  // namespace cli
