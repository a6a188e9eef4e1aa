#include "cli/terminal.h"

#include "cli/library.h"

#include <unistd.h>
#include <nlohmann/json.hpp>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace cli {

namespace {

constexpr size_t large_write = size_t{1} << 18;

std::atomic<bool> has_line = false;

void to_stderr(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
}

// How many bytes the UTF-8 character at the start of `bytes` has; 0: there is none (RFC 3629).
size_t character(std::string_view bytes) {
    const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
    const unsigned char lead = at(0);
    if (lead < 0x80) return 1;
    const size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || bytes.size() < size) return 0;
    for (size_t i = 1; i < size; ++i)
        if ((at(i) & 0xC0U) != 0x80) return 0;
    const bool is_bad = (lead == 0xE0 && at(1) < 0xA0) || (lead == 0xED && at(1) > 0x9F) ||
                        (lead == 0xF0 && at(1) < 0x90) || (lead == 0xF4 && at(1) > 0x8F);
    return is_bad ? 0 : size;
}

}  // namespace

void say(const std::string& message) {
    to_stderr(std::string(has_line.exchange(false) ? "\r\033[K" : "") + "shardfeed: " + message +
              "\n");
}

void Output::write(std::string_view bytes) {
    pending_ += bytes;
    if (pending_.size() >= large_write) flush();
}

void Output::flush() {
    size_t written = 0;
    while (written < pending_.size()) {
        const ssize_t count =
            ::write(STDOUT_FILENO, pending_.data() + written, pending_.size() - written);
        if (count >= 0) {
            written += static_cast<size_t>(count);
        } else if (errno == EPIPE) {
            std::signal(SIGPIPE, SIG_DFL);
            std::raise(SIGPIPE);
        } else if (errno != EINTR) {
            const int error = errno;
            pending_.clear();
            throw Failure(failed, std::string("standard output: ") + std::strerror(error));
        }
    }
    pending_.clear();
}

std::string printable(std::string_view bytes) {
    std::string made;
    while (!bytes.empty()) {
        const size_t size = character(bytes);
        const auto lead = static_cast<unsigned char>(bytes[0]);
        const bool is_control =
            lead < 0x20 || lead == 0x7F ||
            (size == 2 && lead == 0xC2 && static_cast<unsigned char>(bytes[1]) < 0xA0);
        if (size == 0 || is_control) {
            std::array<char, 5> hex = {};
            std::snprintf(hex.data(), hex.size(), "\\x%02x", lead);
            made += hex.data();
            bytes.remove_prefix(1);
        } else {
            made += bytes.substr(0, size);
            bytes.remove_prefix(size);
        }
    }
    return made;
}

bool is_utf8(std::string_view bytes) {
    while (!bytes.empty()) {
        const size_t size = character(bytes);
        if (size == 0) return false;
        bytes.remove_prefix(size);
    }
    return true;
}

std::string size_text(uint64_t bytes) {
    if (bytes < 1000) return std::to_string(bytes) + " B";
    auto number = static_cast<double>(bytes);
    size_t unit = 0;
    constexpr std::array units = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    while (number >= 999.5 && unit + 1 < units.size()) {
        number /= 1000;
        ++unit;
    }
    std::array<char, 32> text = {};
    std::snprintf(text.data(), text.size(), "%.*f %s",
                  number < 9.995   ? 2
                  : number < 99.95 ? 1
                                   : 0,
                  number, units[unit]);
    return text.data();
}

std::string count_text(uint64_t count) {
    std::string digits = std::to_string(count);
    for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
    return digits;
}

std::string json_text(std::string_view bytes) {
    return nlohmann::json(std::string(bytes))
        .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Progress::Progress(bool wanted, std::string verb, uint64_t total)
    : shown_(wanted && ::isatty(STDERR_FILENO) == 1), verb_(std::move(verb)), total_(total) {}

Progress::~Progress() {
    if (shown_ && has_line.exchange(false)) to_stderr("\r\033[K");
}

void Progress::show() {
    const auto now = Clock::now();
    if (now - last_ < std::chrono::milliseconds(200)) return;
    last_ = now;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const auto rate = static_cast<double>(bytes_) / seconds;
    std::string line = "\r\033[K" + verb_ + ": " + count_text(samples_) + " samples, " +
                       size_text(bytes_) + ", " + size_text(static_cast<uint64_t>(rate)) + "/s";
    if (total_ > bytes_ && rate > 0) {
        const auto left = static_cast<uint64_t>(static_cast<double>(total_ - bytes_) / rate);
        line += ", " +
                (left < 120 ? std::to_string(left) + " s" : std::to_string(left / 60) + " min") +
                " left";
    }
    has_line = true;
    to_stderr(line);
}

std::string wrapped(std::string_view text, size_t indent) {
    std::string made;
    std::string line;
    const auto end_line = [&] {
        made += std::string(indent, ' ') + line + "\n";
        line.clear();
    };
    while (!text.empty()) {
        const size_t end = std::min(text.find(' '), text.size());
        const std::string_view word = text.substr(0, end);
        if (!line.empty() && indent + line.size() + 1 + word.size() > 80) end_line();
        if (!line.empty()) line += ' ';
        line += word;
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (!line.empty()) end_line();
    return made;
}

}  // namespace cli
