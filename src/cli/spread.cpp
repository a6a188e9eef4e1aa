#include "cli/spread.h"

#include "cli/json_line.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace cli {

namespace {

// 0 for 0 and 1, else the power of two that is not above the value.
unsigned power_of(uint64_t value) {
    return value < 2 ? 0 : static_cast<unsigned>(std::bit_width(value)) - 1;
}

// Where a value is in the table: below 16 each has a cell, above 16 cells are a power of two.
size_t cell_of(uint64_t value) {
    const unsigned power = power_of(value);
    return power < 4 ? static_cast<size_t>(value)
                     : size_t{16} * (power - 3) + static_cast<size_t>((value >> (power - 4)) & 15U);
}

// The middle of a cell.
uint64_t value_of(size_t cell) {
    if (cell < 16) return cell;
    const auto power = static_cast<unsigned>(cell / 16 + 3);
    return ((uint64_t{16} + cell % 16) << (power - 4)) + (uint64_t{1} << (power - 4)) / 2;
}

}  // namespace

void Spread::add(uint64_t value) {
    ++cells_[cell_of(value)];
    ++count_;
    total_ += value;
    smallest_ = std::min(smallest_, value);
    largest_ = std::max(largest_, value);
}

uint64_t Spread::median() const {
    uint64_t before = 0;
    for (size_t cell = 0; cell < cells_.size(); ++cell) {
        before += cells_[cell];
        if (before > 0 && before * 2 >= count_)
            return std::clamp(value_of(cell), smallest_, largest_);
    }
    return 0;
}

uint64_t Spread::in_power(unsigned power) const {
    uint64_t sum = 0;
    const uint64_t first = power == 0 ? 0 : uint64_t{1} << power;
    const uint64_t last = (uint64_t{2} << power) - 1;
    for (size_t cell = cell_of(first); cell <= cell_of(last); ++cell) sum += cells_[cell];
    return sum;
}

std::string Spread::bars() const {
    if (count_ == 0) return {};
    constexpr std::array bars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    std::vector<uint64_t> counts;
    for (unsigned power = power_of(smallest_); power <= power_of(largest_); ++power)
        counts.push_back(in_power(power));
    const uint64_t most = *std::max_element(counts.begin(), counts.end());
    std::string made;
    for (const uint64_t count : counts)
        made += count == 0 ? " " : bars[static_cast<size_t>((count * 8 - 1) / most)];
    return made;
}

std::string Spread::json() const {
    std::vector<std::string> histogram;
    for (unsigned power = 0; power < 64 && count_ > 0; ++power)
        if (const uint64_t count = in_power(power); count > 0) {
            const uint64_t from = power == 0 ? 0 : uint64_t{1} << power;
            histogram.push_back(json_list(std::array{std::to_string(from), std::to_string(count)}));
        }
    return JsonLine()
        .number("count", count_)
        .number("total", total_)
        .number("min", smallest())
        .number("median", median())
        .number("max", largest_)
        .raw("histogram", json_list(histogram))
        .object();
}

}  // namespace cli
