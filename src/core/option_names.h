// What people type for an option: names that other loaders use, and misspelt ones.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace shf {

struct NameElsewhere {
    std::string_view name;
    std::string_view option;
};
std::span<const NameElsewhere> names_elsewhere();

// The option that does what `name` does in webdataset, torch, tf.data, DALI and their like; empty:
// none of them has that name.
std::string_view option_called(std::string_view name);

// How many insertions, deletions and replacements make one name of the other.
size_t name_distance(std::string_view a, std::string_view b);

}  // namespace shf
