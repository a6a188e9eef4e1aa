// File descriptors: an owner that keeps them off 0-2, waiting that a cancel ends, and the source
// for what can only be read from front to back.
#pragma once

#include "core/error.h"
#include "io/source.h"

#include <poll.h>

#include <chrono>
#include <span>
#include <string_view>
#include <utility>

namespace shf {

using Clock = std::chrono::steady_clock;  // monotonic: a clock that is set back ends no wait late

// An error of a system call, with the number of descriptors when they have run out.
Error system_error(std::string_view doing, int number);

// Whether the process, or the machine, had no descriptor left.
bool lacks_descriptor(const Error& error);

// Owns one descriptor.
class Descriptor {
  public:
    Descriptor() = default;
    // Takes over `fd`, or moves it when it is 0, 1 or 2: a program that closed its standard streams
    // must not print into our shards, nor may we poll its output. Throws Error.
    explicit Descriptor(int fd);
    ~Descriptor() { reset(); }
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }

    [[nodiscard]] int get() const { return fd_; }
    void reset() noexcept;
    // The descriptor, which is then the caller's to close.
    [[nodiscard]] int release() { return std::exchange(fd_, -1); }

  private:
    int fd_ = -1;
};

// Waits until one of `fds` has something to tell, an interval of 0 being a mere look. The last
// element is overwritten and takes the cancel descriptor. False when `deadline` passed before.
// Throws Error(CANCELLED).
bool wait_for_any(std::span<pollfd> fds, const Cancel& cancel, Clock::time_point deadline);

// The error of a source that cannot seek.
[[noreturn]] void refuse_seek();

// A FIFO, socket or device that is open already (without blocking mode, if it can be). A read that
// gets nothing for `silence` nanoseconds fails, 0: it waits on.
std::unique_ptr<Source> descriptor_source(Descriptor descriptor, const Cancel& cancel,
                                          uint64_t silence);

// Standard input. Throws Error(USAGE) while another reader in this process has it.
std::unique_ptr<Source> stdin_source(const Cancel& cancel);

}  // namespace shf
