#include "write/shard_name.h"

#include "core/error.h"
#include "core/options.h"

namespace shf {

ShardName::ShardName(const std::string& pattern) {
    const auto refuse = [&](size_t at, const std::string& cause) {
        refuse_text("pattern", pattern, at, cause,
                    "one number, as %06d, and %% for a percent sign");
    };
    std::string* part = &before_;
    for (size_t i = 0; i < pattern.size(); ++i) {
        if (pattern[i] != '%') {
            *part += pattern[i];
            continue;
        }
        if (i + 1 < pattern.size() && pattern[i + 1] == '%') {
            *part += pattern[++i];
            continue;
        }
        size_t end = i + 1;
        if (end < pattern.size() && pattern[end] == '0') {
            for (++end; end < pattern.size() && pattern[end] >= '0' && pattern[end] <= '9'; ++end)
                if (width_ <= 20) width_ = width_ * 10 + static_cast<uint64_t>(pattern[end] - '0');
            if (width_ < 1 || width_ > 20) refuse(i, "a number has 1 to 20 digits");
        }
        if (end >= pattern.size() || pattern[end] != 'd') refuse(i, "this is no number of a shard");
        if (numbered_) refuse(i, "a second number");
        numbered_ = true;
        part = &after_;
        i = end;
    }
    if (before_.empty() && after_.empty()) refuse(0, "there is no name");
}

std::string ShardName::at(uint64_t number) const {
    if (!numbered_) return before_;
    std::string digits = std::to_string(number);
    if (digits.size() < width_) digits.insert(0, width_ - digits.size(), '0');
    return before_ + digits + after_;
}

}  // namespace shf
