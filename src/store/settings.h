// What users set for stores outside of options: variables of the environment and files.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace shf {

// Takes a copy of the environment, which the functions below read until the next one: programs
// change theirs while readers work. Each call that opens something begins with it. Before the first
// one, and in a forked child, they read the environment itself.
void read_environment();

// What credentials depend on is kept as text: whoever changes it, in a notebook say, gets those
// that fit. All variables of the environment that begin so ("AWS_", "HOME="), with their values, in
// order.
std::string variables_with(std::initializer_list<std::string_view> starts);
// Tells a file that was written again; empty: there is none.
std::string version_of_file(const std::string& path);

// A variable of the environment, without the ends of lines behind it, which secrets from files
// have; empty: not set.
std::string environment(const char* name);
// The whole file, at most 1 MiB. False when there is none. Throws Error(IO, USAGE).
bool read_small_file(const std::string& path, std::string& text);
// Where a file of the user lies, such as ".aws/config"; empty where HOME is not set.
std::string home_path(std::string_view path);

}  // namespace shf
