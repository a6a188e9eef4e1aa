// When a request is made again: exponential waits with full jitter, and what a server that is busy
// makes all readers of this process do: pause, and send fewer requests at a time (H3, H4, S3).
#pragma once

#include "core/error.h"
#include "io/descriptor.h"
#include "io/source_context.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace shf {

class HttpRetry {
  public:
    // For one piece of work on `server` (HttpStore::server).
    HttpRetry(std::string server, const SourceContext& context)
        : server_(std::move(server)), context_(context) {}

    // Before each request: waits while the server has asked for a pause.
    void before_request();
    // After a request that failed: waits, or throws `error` when it will not pass or the budget is
    // spent. `pause`: what the server asks for, in nanoseconds.
    void after(const Error& error, std::optional<uint64_t> pause);
    // Bytes came: the next fault is a new one.
    void progressed();
    // A range came whole.
    void succeeded();
    // How many requests a reader should have on their way: of `connections`, half as many from each
    // second on in which the server was busy, and slowly more with the ranges that come after that.
    [[nodiscard]] uint64_t connections() const;

  private:
    void refused();
    void sleep_until(Clock::time_point when) const;

    const std::string server_;
    const SourceContext context_;
    uint64_t failed_ = 0;  // requests, one after another
    Clock::time_point begun_{};
};

}  // namespace shf
