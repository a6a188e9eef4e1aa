// What credentials depend on, as text: whoever changes it, in a notebook say, gets those that fit.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace shf {

// All variables of the environment that begin so ("AWS_", "HOME="), with their values, in order.
std::string variables_with(std::initializer_list<std::string_view> starts);
// Tells a file that was written again; empty: there is none.
std::string version_of_file(const std::string& path);

}  // namespace shf
