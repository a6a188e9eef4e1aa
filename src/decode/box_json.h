// Boxes as JSON has them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace shf {

// Four numbers, whatever they mean.
using JsonBox = std::array<double, 4>;

// The boxes at the end of a path of names. Where the path goes through a list, each element of it
// has one box at the rest of the path; else the path ends at a list of boxes. A box is a list of
// four numbers. Of what lies beside the path only brackets and quotes are looked at; at most `most`
// boxes.
// Throws Error: FORMAT for what is no JSON or has no boxes there, LIMIT.
std::vector<JsonBox> read_boxes(std::span<const uint8_t> json, std::span<const std::string> path,
                                uint64_t most);

}  // namespace shf
