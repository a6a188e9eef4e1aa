#include "store/settings.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <set>

extern "C" char** environ;

namespace shf {

std::string variables_with(std::initializer_list<std::string_view> starts) {
    std::set<std::string_view> variables;
    for (char** at = environ; at && *at; ++at)
        for (const std::string_view start : starts)
            if (std::string_view(*at).starts_with(start)) variables.insert(*at);
    std::string result;
    for (const std::string_view variable : variables) result.append(variable).append(1, '\0');
    return result;
}

std::string version_of_file(const std::string& path) {
    struct stat found = {};
    if (path.empty() || ::stat(path.c_str(), &found) != 0) return {};
    std::string result;
    for (const auto number :
         {static_cast<uint64_t>(found.st_dev), uint64_t{found.st_ino},
          static_cast<uint64_t>(found.st_size), static_cast<uint64_t>(found.st_mtim.tv_sec),
          static_cast<uint64_t>(found.st_mtim.tv_nsec)})
        result += std::to_string(number) + ' ';
    return result;
}

}  // namespace shf
