// What the command prints.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace cli {

// One line to standard error, after "shardfeed: ". Erases the progress line before. Any thread.
void say(const std::string& message);

// Data for standard output, in large writes. A reader that has closed the pipe ends the process as
// SIGPIPE does. Other faults are a Failure of write() or flush().
class Output {
  public:
    Output() = default;
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;

    void write(std::string_view bytes);
    void flush();

  private:
    std::string pending_;
};

// Bytes as text: control bytes, and what is no UTF-8, as \xNN.
std::string printable(std::string_view bytes);
bool is_utf8(std::string_view bytes);
// Three digits and a unit: "1.23 GB".
std::string size_text(uint64_t bytes);
// "12,345"
std::string count_text(uint64_t count);
// A string of JSON, in quotes; bytes that are no UTF-8 become U+FFFD.
std::string json_text(std::string_view bytes);

// A line with counts and rates, which is renewed in place. Only where standard error is a terminal.
class Progress {
  public:
    // `total` bytes are expected; 0: not known.
    Progress(bool wanted, std::string verb, uint64_t total);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void add(uint64_t samples, uint64_t bytes) {
        samples_ += samples;
        bytes_ += bytes;
        if (shown_ && (++calls_ & 63U) == 0) show();
    }

  private:
    using Clock = std::chrono::steady_clock;

    void show();

    const bool shown_;
    const std::string verb_;
    const uint64_t total_;
    const Clock::time_point start_ = Clock::now();
    Clock::time_point last_ = start_;
    uint64_t samples_ = 0;
    uint64_t bytes_ = 0;
    unsigned calls_ = 0;
};

// Text with lines of at most 80 columns, each after `indent` blanks.
std::string wrapped(std::string_view text, size_t indent);

}  // namespace cli
