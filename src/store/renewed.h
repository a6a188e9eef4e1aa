// Credentials that expire: one value for each text of settings, shared by all that is open in this
// process, and renewed before it expires. They stay in memory.
#pragma once

#include "core/cancel.h"
#include "core/error.h"
#include "core/per_process.h"
#include "core/times.h"

#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace shf {

template <typename Value>
struct Expiring {
    Value value;
    std::optional<int64_t> expires;  // seconds since 1970; nothing: it lasts
};

// Any number of threads, in forked children too. `settings` is all that the value depends on.
template <typename Value>
class Renewed {
  public:
    // Asks for a value, which may wait for servers. Throws Error.
    using Find = std::function<Expiring<Value>()>;

    constexpr Renewed() = default;

    // Throws what `find` throws, and Error(CANCELLED).
    Value get(const std::string& settings, const Cancel& cancel, const Find& find) {
        const auto found = found_for(settings);
        const auto locked = lock(*found, cancel);
        const int64_t now = seconds_now();
        std::optional<Expiring<Value>>& known = found->known;
        const bool old = known && known->expires && now > *known->expires - renewed_before &&
                         now >= found->attempt;
        if (!known) {
            known = find();
        } else if (old) {
            found->attempt = now + attempt_after;
            try {
                known = find();
            } catch (const Error& error) {
                // It is still good for some minutes.
                if (error.code() == SHF_E_CANCELLED || now >= *known->expires) throw;
            }
        }
        return known->value;
    }

    // After a server has refused `refused`: looks for another value. False: there is none.
    bool renew(const std::string& settings, const Value& refused, const Cancel& cancel,
               const Find& find) {
        const auto found = found_for(settings);
        const auto locked = lock(*found, cancel);
        // Another thread may have renewed it.
        if (!found->known || found->known->value == refused) found->known = find();
        return !(found->known->value == refused);
    }

  private:
    // A request that begins with a value ends before it expires.
    static constexpr int64_t renewed_before = 5 * 60;  // seconds
    // How long a value near its end is used on when it cannot be renewed, before the next attempt.
    static constexpr int64_t attempt_after = 30;
    // Values of more settings than these are looked for again.
    static constexpr size_t most_settings = 64;

    struct Found {
        std::mutex mutex;  // held while servers are asked: the others wait for the answer
        std::optional<Expiring<Value>> known;
        int64_t attempt = 0;  // not before this time
    };
    struct All {
        std::mutex mutex;
        std::map<std::string, std::shared_ptr<Found>> by_settings;
    };

    std::shared_ptr<Found> found_for(const std::string& settings) {
        All& all = all_.get();
        const std::lock_guard lock(all.mutex);
        if (all.by_settings.size() >= most_settings && !all.by_settings.contains(settings))
            all.by_settings.clear();
        std::shared_ptr<Found>& found = all.by_settings[settings];
        if (!found) found = std::make_shared<Found>();
        return found;
    }

    // A cancel ends the wait for another thread's answer.
    static std::unique_lock<std::mutex> lock(Found& found, const Cancel& cancel) {
        std::unique_lock lock(found.mutex, std::try_to_lock);
        while (!lock.owns_lock()) {
            cancel.check();
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            (void)lock.try_lock();
        }
        return lock;
    }

    PerProcess<All> all_;
};

}  // namespace shf
