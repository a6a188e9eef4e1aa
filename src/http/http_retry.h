// When a request is made again: exponential waits with full jitter, and pauses that a server asks
// for, which hold for all readers of this process (H3, H4).
#pragma once

#include "core/error.h"
#include "io/descriptor.h"

#include <cstdint>
#include <optional>
#include <string>

namespace shf {

class Cancel;
struct Options;

class HttpRetry {
  public:
    // For one piece of work on `server`. The references must outlive it.
    HttpRetry(std::string server, const Options& options, const Cancel& cancel);

    // Before each request: waits while the server has asked for a pause.
    void before_request();
    // After a request that failed: waits, or throws `error` when it will not pass or the budget is
    // spent. `pause`: what the server asks for, in nanoseconds.
    void after(const Error& error, std::optional<uint64_t> pause);
    // Bytes came: the next fault is a new one.
    void progressed();

  private:
    void sleep_until(Clock::time_point when) const;

    const std::string server_;
    const Options& options_;
    const Cancel& cancel_;
    uint64_t failed_ = 0;  // requests, one after another
    Clock::time_point begun_{};
};

}  // namespace shf
