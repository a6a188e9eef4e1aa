#include "store/settings.h"

#include "core/error.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <set>

extern "C" char** environ;

namespace shf {

namespace {

constexpr size_t most_bytes = size_t{1} << 20;

}  // namespace

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

std::string environment(const char* name) {
    const char* const value = std::getenv(name);
    return value ? value : "";
}

std::string from_home(std::string_view path) {
    const std::string home = environment("HOME");
    return home.empty() ? std::string() : home + "/" + std::string(path);
}

bool read_small_file(const std::string& path, std::string& text) {
    if (path.empty()) return false;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        if (errno == ENOENT || errno == ENOTDIR) return false;
        throw Error::system("open \"" + escape(path) + "\"", errno);
    }
    text.clear();
    std::array<char, 16 * 1024> piece;
    for (;;) {
        const ssize_t count = ::read(fd, piece.data(), piece.size());
        if (count < 0 && errno == EINTR) continue;
        const int number = errno;
        if (count <= 0 || text.size() > most_bytes) {
            ::close(fd);
            if (count < 0) throw Error::system("read \"" + escape(path) + "\"", number);
            if (count == 0) return true;
            throw Error(SHF_E_USAGE, "\"" + escape(path) + "\" has more than 1 MiB",
                        "look at what this file is");
        }
        text.append(piece.data(), static_cast<size_t>(count));
    }
}

}  // namespace shf
