#include "http/http_retry.h"

#include "core/cancel.h"
#include "core/options.h"
#include "core/per_process.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
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

// What a server that was busy gets.
struct Mercy {
    Clock::time_point until{};   // no requests before that
    double connections = 0;      // of each reader, at most; 0: any
    Clock::time_point halved{};  // when there were more
};
// Requests that were on their way together are refused together, and count once.
constexpr std::chrono::seconds one_refusal{1};
// One connection more after so many ranges on each of those that are allowed.
constexpr double slowness = 8;

struct Servers {
    std::mutex mutex;
    std::map<std::string, Mercy> busy;
    std::atomic<size_t> limited{0};  // those with a bound of connections: mostly none
};
constinit PerProcess<Servers> all_servers;

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
        Servers& servers = all_servers.get();
        const std::lock_guard lock(servers.mutex);
        const auto at = servers.busy.find(server_);
        if (at != servers.busy.end()) until = at->second.until;
    }
    sleep_until(until);
}

void HttpRetry::progressed() {
    failed_ = 0;
}

uint64_t HttpRetry::connections() const {
    const uint64_t most = context_.options.connections;
    Servers& servers = all_servers.get();
    if (servers.limited.load(std::memory_order_relaxed) == 0) return most;
    const std::lock_guard lock(servers.mutex);
    const auto at = servers.busy.find(server_);
    if (at == servers.busy.end() || at->second.connections == 0) return most;
    return std::min(most, static_cast<uint64_t>(at->second.connections));
}

void HttpRetry::refused() {
    Servers& servers = all_servers.get();
    const std::lock_guard lock(servers.mutex);
    Mercy& mercy = servers.busy[server_];
    const auto now = Clock::now();
    if (mercy.connections > 0 && now - mercy.halved < one_refusal) return;
    const auto most = static_cast<double>(context_.options.connections);
    if (mercy.connections == 0) ++servers.limited;
    const double before = mercy.connections == 0 ? most : std::min(mercy.connections, most);
    mercy.connections = std::max(1.0, before / 2);
    mercy.halved = now;
}

void HttpRetry::succeeded() {
    Servers& servers = all_servers.get();
    if (servers.limited.load(std::memory_order_relaxed) == 0) return;
    const std::lock_guard lock(servers.mutex);
    const auto at = servers.busy.find(server_);
    if (at == servers.busy.end() || at->second.connections == 0) return;
    Mercy& mercy = at->second;
    mercy.connections += 1 / (slowness * mercy.connections);
    if (mercy.connections < static_cast<double>(context_.options.connections)) return;
    mercy.connections = 0;
    --servers.limited;
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
    if (error.code() == SHF_E_THROTTLED) refused();
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
        Servers& servers = all_servers.get();
        const std::lock_guard lock(servers.mutex);
        auto& known = servers.busy[server_].until;
        known = std::max(known, until);  // before_request() waits
    }
    // As long at least: "Retry-After: 0", or a date by another clock, must not use up all attempts
    // at once.
    const auto most = std::min<milliseconds>(
        first_wait * (int64_t{1} << std::min<uint64_t>(failed_, 20)), longest_wait);
    sleep_until(now + std::chrono::duration_cast<Clock::duration>(most * jitter()));
}

}  // namespace shf
