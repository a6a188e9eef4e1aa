#include "store/settings.h"

#include "core/error.h"
#include "core/per_process.h"
#include "core/times.h"
#include "io/descriptor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

extern "C" char** environ;

namespace shf {

namespace {

constexpr size_t most_settings = size_t{1} << 20;

// Not every program that renews credentials puts a new file in the place of the old one: some write
// into it, and for a moment half of it is there. A file that is empty, or was written to less than
// this ago, is looked at again, for at most so long.
constexpr auto settled_after = std::chrono::milliseconds(100);
constexpr auto longest_settling = std::chrono::milliseconds(800);
constexpr auto look_again = std::chrono::milliseconds(20);

using Variables = std::set<std::string>;  // "NAME=value"

struct Copy {
    std::mutex mutex;
    std::shared_ptr<const Variables> variables;
};
constinit PerProcess<Copy> copy;

Variables variables_now() {
    Variables variables;
    for (char** at = environ; at && *at; ++at) variables.insert(*at);
    return variables;
}

std::shared_ptr<const Variables> variables() {
    Copy& all = copy.get();
    {
        const std::lock_guard lock(all.mutex);
        if (all.variables) return all.variables;
    }
    return std::make_shared<const Variables>(variables_now());
}

// Whether the last writing was not just now. The clock of a file server may be another one.
bool is_settled(const std::string& path) {
    struct stat found = {};
    timespec now = {};
    if (::stat(path.c_str(), &found) != 0) return true;
    ::clock_gettime(CLOCK_REALTIME, &now);
    const auto age = std::chrono::nanoseconds(nanoseconds(now) - nanoseconds(found.st_mtim));
    return age > settled_after || age < -settled_after;
}

bool read_once(const std::string& path, std::string& text) {
    if (path.empty()) return false;
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.get() < 0) {
        if (errno == ENOENT || errno == ENOTDIR) return false;
        throw Error::system("open \"" + escape(path) + "\"", errno);
    }
    text.clear();
    std::array<char, 16 * 1024> piece;
    for (;;) {
        const ssize_t count = ::read(file.get(), piece.data(), piece.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) throw Error::system("read \"" + escape(path) + "\"", errno);
        if (count == 0) return true;
        if (text.size() > most_settings)
            throw Error(SHF_E_USAGE, "\"" + escape(path) + "\" has more than 1 MiB",
                        "look at what this file is");
        text.append(piece.data(), static_cast<size_t>(count));
    }
}

}  // namespace

void read_environment() {
    auto variables = std::make_shared<const Variables>(variables_now());
    Copy& all = copy.get();
    const std::lock_guard lock(all.mutex);
    all.variables = std::move(variables);
}

std::string variables_with(std::initializer_list<std::string_view> starts) {
    std::string result;
    const auto all = variables();
    for (const std::string& variable : *all)
        if (std::any_of(starts.begin(), starts.end(),
                        [&](std::string_view start) { return variable.starts_with(start); }))
            result.append(variable).append(1, '\0');
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
    const std::string start = std::string(name) + "=";
    const auto all = variables();
    const auto at = all->lower_bound(start);
    std::string value =
        at != all->end() && at->starts_with(start) ? at->substr(start.size()) : std::string();
    while (value.ends_with('\n') || value.ends_with('\r')) value.pop_back();
    return value;
}

std::string home_path(std::string_view path) {
    const std::string home = environment("HOME");
    return home.empty() ? std::string() : home + "/" + std::string(path);
}

bool read_small_file(const std::string& path, std::string& text) {
    const auto start = std::chrono::steady_clock::now();
    for (;;) {
        const std::string before = version_of_file(path);
        if (!read_once(path, text)) return false;
        if (std::chrono::steady_clock::now() - start > longest_settling ||
            (!text.empty() && is_settled(path) && version_of_file(path) == before))
            return true;
        std::this_thread::sleep_for(look_again);
    }
}

}  // namespace shf
