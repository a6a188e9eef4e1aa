#include "cli/selection.h"

#include "cli/library.h"
#include "cli/terminal.h"

#include <fnmatch.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>

namespace cli {

namespace {

[[noreturn]] void bad_slice(const std::string& text) {
    throw Failure(
        wrong_command_line,
        printable(text) +
            " is no slice; help: write N, START:STOP or START:STOP:STEP, with numbers from "
            "0 and a step from 1");
}

}  // namespace

Slice::Slice(const std::string& text, bool from_zero) {
    std::vector<std::string> parts(1);
    for (const char c : text)
        if (c == ':')
            parts.emplace_back();
        else
            parts.back() += c;
    const auto number = [&](size_t part, uint64_t& out) {
        if (part >= parts.size() || (parts[part].empty() && parts.size() > 1)) return;
        const std::string& digits = parts[part];
        const char* end = digits.data() + digits.size();
        const auto [stop, error] = std::from_chars(digits.data(), end, out);
        if (error != std::errc() || stop != end) bad_slice(text);
    };
    number(0, start_);
    number(1, stop_);
    number(2, step_);
    if (parts.size() > 3 || step_ == 0) bad_slice(text);
    if (parts.size() == 1) {
        if (start_ == std::numeric_limits<uint64_t>::max()) bad_slice(text);
        stop_ = start_ + 1;
    }
    origin_ = from_zero ? 0 : start_;
}

KeyList::KeyList(const std::vector<std::string>& words) {
    for (const std::string& word : words) {
        if (word.empty() || word[0] != '@') {
            add(word);
            continue;
        }
        const std::string path = word.substr(1);
        std::ifstream file(path, std::ios::binary);
        std::string line;
        if (!file)
            throw Failure(failed, printable(path) + ": " + std::strerror(errno) +
                                      "; help: @FILE is a file with a key on each line");
        while (std::getline(file, line)) {
            if (!line.empty() && line.back() == '\r') line.pop_back();
            if (!line.empty()) add(line);
        }
        if (file.bad()) throw Failure(failed, printable(path) + ": it cannot be read to its end");
    }
}

bool KeyList::has(std::string_view key) const {
    const std::string text(key);
    return keys_.contains(text) ||
           std::any_of(patterns_.begin(), patterns_.end(), [&](const std::string& pattern) {
               return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
           });
}

void KeyList::add(const std::string& word) {
    if (word.find_first_of("*?[") == std::string::npos)
        keys_.insert(word);
    else
        patterns_.push_back(word);
}

}  // namespace cli
