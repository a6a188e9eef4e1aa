#include "cli/machine.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

namespace cli {

namespace {

// A limit of version 1 that is not set is near 2^63.
constexpr uint64_t no_limit = uint64_t{1} << 60;

uint64_t pages_to_bytes(int name) {
    const long pages = ::sysconf(name);
    const long size = ::sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(size) : 0;
}

// "MemAvailable: 123 kB" of /proc/meminfo.
uint64_t available_memory() {
    std::ifstream file("/proc/meminfo");
    std::string name;
    uint64_t kilobytes = 0;
    std::string rest;
    while (file >> name >> kilobytes && std::getline(file, rest))
        if (name == "MemAvailable:") return kilobytes * 1024;
    return pages_to_bytes(_SC_AVPHYS_PAGES);
}

std::string first_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

template <typename Number>
void lower(std::optional<Number>& limit, Number found) {
    limit = limit ? std::min(*limit, found) : found;
}

void read_memory_limit(const std::string& path, std::optional<uint64_t>& limit) {
    std::istringstream line(first_line(path));
    uint64_t found = 0;
    if (line >> found && found < no_limit) lower(limit, found);
}

// "150000 100000": so many of so many microseconds; "max 100000": no limit.
void read_core_limit(const std::string& text, std::optional<double>& limit) {
    std::istringstream line(text);
    double quota = 0;
    double period = 0;
    if (line >> quota >> period && quota > 0 && period > 0) lower(limit, quota / period);
}

// The limits of a group count for all below it.
void read_groups(Machine& machine) {
    std::ifstream file("/proc/self/cgroup");
    std::string line;
    while (std::getline(file, line)) {  // "0::/user.slice", or "5:memory:/docker/1"
        const size_t first = line.find(':');
        const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string kind = line.substr(first + 1, second - first - 1);
        std::string group = line.substr(second + 1);
        const std::string root = "/sys/fs/cgroup" + (kind.empty() ? "" : "/" + kind);
        for (;;) {
            if (kind.empty()) {
                read_memory_limit(root + group + "/memory.max", machine.memory_limit);
                read_core_limit(first_line(root + group + "/cpu.max"), machine.core_limit);
            } else if (kind == "memory") {
                read_memory_limit(root + group + "/memory.limit_in_bytes", machine.memory_limit);
            } else if (kind.find("cpu") != std::string::npos) {
                read_core_limit(first_line(root + group + "/cpu.cfs_quota_us") + " " +
                                    first_line(root + group + "/cpu.cfs_period_us"),
                                machine.core_limit);
            }
            if (group.empty()) break;
            group.resize(group == "/" ? 0 : group.rfind('/'));
        }
    }
}

}  // namespace

Machine this_machine() {
    Machine made;
    made.cores = static_cast<unsigned>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
    cpu_set_t set;
    CPU_ZERO(&set);
    made.usable_cores = ::sched_getaffinity(0, sizeof set, &set) == 0
                            ? static_cast<unsigned>(CPU_COUNT(&set))
                            : made.cores;
    made.memory = pages_to_bytes(_SC_PHYS_PAGES);
    made.free_memory = available_memory();
    rlimit files = {};
    if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
        made.open_files = files.rlim_cur;
        made.most_open_files = files.rlim_max;
    }
    read_groups(made);
    return made;
}

double processor_seconds() {
    rusage used = {};
    ::getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

}  // namespace cli
