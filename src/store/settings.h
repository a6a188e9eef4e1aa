// What users set for stores outside of options: variables of the environment and files.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace shf {

// What credentials depend on is kept as text: whoever changes it, in a notebook say, gets those
// that fit. All variables of the environment that begin so ("AWS_", "HOME="), with their values, in
// order.
std::string variables_with(std::initializer_list<std::string_view> starts);
// Tells a file that was written again; empty: there is none.
std::string version_of_file(const std::string& path);

// A variable of the environment; empty: not set.
std::string environment(const char* name);
// The whole file, at most 1 MiB. False when there is none. Throws Error(IO, LIMIT).
bool read_small_file(const std::string& path, std::string& text);
// "~/.aws/" and so on, of the user.
std::string from_home(std::string_view path);

}  // namespace shf
