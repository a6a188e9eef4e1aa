#include "url/glob.h"

#include "core/error.h"

#include <dirent.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace shf {

namespace {

constexpr std::string_view special("*?[\0", 4);

// No such file, and none can be there.
bool is_absent(int number) {
    return number == ENOENT || number == ENOTDIR || number == ENAMETOOLONG;
}

Error failure(const char* what, const std::string& path, int number) {
    Fault fault = Error::system(what, number).fault();
    fault.cause = std::string("\"").append(escape(path)).append("\": ").append(fault.cause);
    return Error(std::move(fault));
}

// A pattern as fnmatch() takes it.
std::string system_pattern(std::string_view own) {
    std::string pattern;
    for (size_t i = 0; i < own.size(); ++i) {
        if (own[i] == Glob::literal && i + 1 < own.size()) {
            pattern += '\\';
            pattern += own[++i];
        } else if (own[i] == '\\') {
            pattern += "\\\\";
        } else {
            pattern += own[i];
        }
    }
    return pattern;
}

}  // namespace

bool Glob::is_pattern(std::string_view pattern) {
    for (size_t i = pattern.find_first_of(special); i < pattern.size();
         i = pattern.find_first_of(special, i)) {
        if (pattern[i] != literal) return true;
        i += 2;
    }
    return false;
}

std::string Glob::literal_path(std::string_view pattern) {
    std::string path(pattern);
    path.erase(std::remove(path.begin(), path.end(), literal), path.end());
    return path;
}

std::string Glob::literal_start(std::string_view pattern) {
    size_t end = pattern.find_first_of(special);
    while (end < pattern.size() && pattern[end] == literal)
        end = pattern.find_first_of(special, end + 2);
    return literal_path(pattern.substr(0, end));
}

bool Glob::fits(std::string_view pattern, const std::string& text) {
    return ::fnmatch(system_pattern(pattern).c_str(), text.c_str(), FNM_PATHNAME) == 0;
}

bool Glob::exists(const std::string& path) {
    struct stat status = {};
    if (::lstat(path.c_str(), &status) == 0) return true;
    if (is_absent(errno)) return false;
    throw failure("look at", path, errno);
}

std::vector<std::string> Glob::matches(std::string_view pattern) {
    std::vector<std::string> found;
    walk({}, pattern, found);
    std::sort(found.begin(), found.end());
    return found;
}

// Adds what matches `rest` below `path`, which is empty or ends with a slash.
void Glob::walk(std::string path, std::string_view rest, std::vector<std::string>& found) {
    // Components that are no patterns need no list of their folder.
    std::string_view component;
    for (;;) {
        const size_t slash = rest.find('/');
        component = rest.substr(0, slash);
        if (is_pattern(component)) break;
        path += literal_path(component);
        if (slash == rest.npos) {
            if (exists(path)) found.push_back(std::move(path));
            return;
        }
        path += '/';
        rest.remove_prefix(slash + 1);
    }
    const bool last = component.size() == rest.size();
    if (!last) rest.remove_prefix(component.size() + 1);

    const std::string pattern = system_pattern(component);
    const std::string_view start = component.substr(0, component.find_first_of(special));
    const std::shared_ptr<const Names> names = names_in(path.empty() ? "." : path);
    for (auto name = std::lower_bound(names->begin(), names->end(), start);
         name != names->end() && name->starts_with(start); ++name) {
        if (::fnmatch(pattern.c_str(), name->c_str(), FNM_PERIOD) != 0) continue;
        if (last)
            found.push_back(path + *name);
        else
            walk(path + *name + "/", rest, found);
    }
}

std::shared_ptr<const Glob::Names> Glob::names_in(const std::string& folder) {
    if (names_ && listed_ == folder) return names_;
    auto names = std::make_shared<Names>();
    struct Close {
        void operator()(DIR* directory) const { ::closedir(directory); }
    };
    const std::unique_ptr<DIR, Close> directory(::opendir(folder.c_str()));
    if (!directory && !is_absent(errno)) throw failure("list the folder", folder, errno);
    while (directory) {
        errno = 0;
        const dirent* entry = ::readdir(directory.get());
        if (!entry && errno != 0) throw failure("list the folder", folder, errno);
        if (!entry) break;
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") names->emplace_back(name);
    }
    std::sort(names->begin(), names->end());
    listed_ = folder;
    return names_ = std::move(names);
}

}  // namespace shf
