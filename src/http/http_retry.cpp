#include "http/http_retry.h"

#include "core/cancel.h"
#include "core/options.h"
#include "core/per_process.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

namespace shf {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds first_wait{100}, longest_wait{60'000};
constexpr std::chrono::minutes longest_time{10};

// Until when each server wants no requests.
struct Pauses {
    std::mutex mutex;
    std::map<std::string, Clock::time_point> until;
};
constinit PerProcess<Pauses> all_pauses;

// Not of the order of samples: readers that failed together must not come back together.
double jitter() {
    thread_local std::minstd_rand random{std::random_device{}()};
    return std::uniform_real_distribution<>(0.0, 1.0)(random);
}

}  // namespace

void HttpRetry::sleep_until(Clock::time_point when) const {
    for (auto now = Clock::now(); now < when; now = Clock::now()) {
        context_.cancel.check();
        const int fd = context_.cancel.fd();
        const auto left = std::chrono::ceil<milliseconds>(when - now);
        if (fd < 0) {
            std::this_thread::sleep_for(std::min(left, milliseconds(5)));
        } else {
            pollfd wait = {.fd = fd, .events = POLLIN, .revents = 0};
            (void)::poll(&wait, 1, static_cast<int>(std::min<int64_t>(left.count(), 1000)));
        }
    }
    context_.cancel.check();
}

void HttpRetry::before_request() {
    Clock::time_point until{};
    {
        Pauses& pauses = all_pauses.get();
        const std::lock_guard lock(pauses.mutex);
        const auto at = pauses.until.find(server_);
        if (at != pauses.until.end()) until = at->second;
    }
    sleep_until(until);
}

void HttpRetry::progressed() {
    failed_ = 0;
}

void HttpRetry::after(const Error& error, std::optional<uint64_t> pause) {
    if (error.code() != SHF_E_NET_TRANSIENT && error.code() != SHF_E_THROTTLED) throw error;
    const auto now = Clock::now();
    if (failed_++ == 0) begun_ = now;
    if (failed_ > context_.options.retries || now - begun_ > longest_time) {
        Fault fault = error.fault();
        fault.cause += failed_ == 1 ? "" : "; " + plural(failed_, "request") + " failed";
        throw Error(std::move(fault));
    }
    ++context_.use.retries;
    warn_once(SourceTrouble::retry,
              server_ + ": " + error.fault().cause +
                  "; the request is retried; later retries are only counted (counter retries)",
              context_);
    if (pause) {
        if (std::chrono::nanoseconds(static_cast<int64_t>(std::min<uint64_t>(*pause, INT64_MAX))) >
            longest_wait) {
            Fault fault = error.fault();
            fault.code = SHF_E_THROTTLED;
            fault.cause +=
                ", and asks for a pause of " + std::to_string(*pause / 1'000'000'000) + " s";
            throw Error(std::move(fault));
        }
        const auto until = now + std::chrono::nanoseconds(static_cast<int64_t>(*pause));
        Pauses& pauses = all_pauses.get();
        const std::lock_guard lock(pauses.mutex);
        auto& known = pauses.until[server_];
        known = std::max(known, until);  // before_request() waits
    }
    // As long at least: "Retry-After: 0", or a date by another clock, must not use up all attempts
    // at once.
    const auto most = std::min<milliseconds>(
        first_wait * (int64_t{1} << std::min<uint64_t>(failed_, 20)), longest_wait);
    sleep_until(now + std::chrono::duration_cast<Clock::duration>(most * jitter()));
}

}  // namespace shf
