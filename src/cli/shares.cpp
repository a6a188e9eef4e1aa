#include "cli/shares.h"

#include "cli/library.h"
#include "cli/terminal.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <sstream>

namespace cli {

namespace {

[[noreturn]] void bad_shares(const std::string& text) {
    throw Failure(wrong_command_line, printable(text) +
                                          " is no list of shares; help: write names and positive "
                                          "numbers, such as train:0.9,val:0.1");
}

}  // namespace

Shares::Shares(const std::string& text) {
    if (text.empty()) {
        names_ = {""};
        ends_ = {1};
        return;
    }
    std::istringstream items(text);
    std::string item;
    double sum = 0;
    while (std::getline(items, item, ',')) {
        const size_t colon = item.rfind(':');
        if (colon == std::string::npos || colon == 0) bad_shares(text);
        std::istringstream number(item.substr(colon + 1));
        double share = 0;
        if (!(number >> share) || !number.eof() || !std::isfinite(share) || share <= 0)
            bad_shares(text);
        const std::string name = item.substr(0, colon);
        if (std::find(names_.begin(), names_.end(), name) != names_.end()) bad_shares(text);
        names_.push_back(name);
        sum += share;
        ends_.push_back(sum);
    }
    if (names_.empty()) bad_shares(text);
    for (double& end : ends_) end /= sum;
    ends_.back() = 1;
}

size_t Shares::part_of(std::string_view key) const {
    if (names_.size() == 1) return 0;
    const double place = std::ldexp(static_cast<double>(XXH3_64bits(key.data(), key.size())), -64);
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), place);
    return std::min(static_cast<size_t>(end - ends_.begin()), names_.size() - 1);
}

}  // namespace cli
