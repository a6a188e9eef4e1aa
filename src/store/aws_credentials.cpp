#include "store/aws_credentials.h"

#include "core/cancel.h"
#include "core/error.h"
#include "core/options.h"
#include "core/per_process.h"
#include "io/pipe.h"
#include "store/aws_chain.h"
#include "store/aws_config.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <thread>

extern "C" char** environ;

namespace shf {

namespace {

// A request that begins with keys ends before they expire.
constexpr int64_t renewed_before = 5 * 60;  // seconds
// How long keys near their end are used on when they cannot be renewed, before the next attempt.
constexpr int64_t attempt_after = 30;
// Keys of more settings than these are looked for again.
constexpr size_t most_settings = 64;

struct Found {
    std::mutex mutex;  // held while servers are asked: the others wait for the answer
    std::optional<TemporaryKeys> keys;
    int64_t attempt = 0;  // not before this time
};

struct AllFound {
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<Found>> by_settings;
};
constinit PerProcess<AllFound> all_found;

// Tells a file that was written again; empty: there is none.
std::string version_of_file(const std::string& path) {
    struct stat found = {};
    if (path.empty() || ::stat(path.c_str(), &found) != 0) return {};
    std::string result;
    for (const auto number :
         {static_cast<uint64_t>(found.st_dev), uint64_t{found.st_ino},
          static_cast<uint64_t>(found.st_size), static_cast<uint64_t>(found.st_mtim.tv_sec),
          static_cast<uint64_t>(found.st_mtim.tv_nsec)})
        result += std::to_string(number) + ' ';
    return result;
}

// All that the keys depend on: the options, the two files, and of the environment what is for AWS,
// and where programs are. Whoever changes these, in a notebook say, gets the keys that fit.
std::string settings_of(const Options& options) {
    std::set<std::string_view> variables;
    for (char** at = environ; at && *at; ++at)
        for (const std::string_view start : {"AWS_", "HOME=", "PATH="})
            if (std::string_view(*at).starts_with(start)) variables.insert(*at);
    std::string result =
        options.s3_profile + '\0' + options.s3_region + '\0' + (pipes_refused(options) ? "s" : "") +
        '\0' + version_of_file(aws_config_path()) + '\0' + version_of_file(aws_credentials_path());
    for (const std::string_view variable : variables) result.append(1, '\0').append(variable);
    return result;
}

std::shared_ptr<Found> found_for(const Options& options) {
    AllFound& all = all_found.get();
    const std::string settings = settings_of(options);
    const std::lock_guard lock(all.mutex);
    if (all.by_settings.size() >= most_settings && !all.by_settings.contains(settings))
        all.by_settings.clear();
    std::shared_ptr<Found>& found = all.by_settings[settings];
    if (!found) found = std::make_shared<Found>();
    return found;
}

// A cancel ends the wait for another thread's answer.
std::unique_lock<std::mutex> lock(Found& found, const Cancel& cancel) {
    std::unique_lock lock(found.mutex, std::try_to_lock);
    while (!lock.owns_lock()) {
        cancel.check();
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        (void)lock.try_lock();
    }
    return lock;
}

TemporaryKeys look(const SourceContext& context) {
    return find_aws_keys(aws_config(context.options), context);
}

bool of_options(const Options& options) {
    if (options.s3_access_key.empty() != options.s3_secret_key.empty())
        throw Error(SHF_E_USAGE, "one of the options s3_access_key and s3_secret_key is missing",
                    "give both or none");
    if (options.s3_access_key.empty() && !options.s3_session_token.empty())
        throw Error(SHF_E_USAGE, "option s3_session_token without s3_access_key",
                    "give s3_access_key and s3_secret_key too");
    return !options.s3_access_key.empty();
}

}  // namespace

AwsKeys aws_keys(const SourceContext& context) {
    const Options& options = context.options;
    if (of_options(options))
        return {.access_key = options.s3_access_key,
                .secret_key = options.s3_secret_key,
                .session_token = options.s3_session_token};
    const auto found = found_for(options);
    const auto locked = lock(*found, context.cancel);
    const auto now = static_cast<int64_t>(std::time(nullptr));
    const bool old = found->keys && found->keys->expires &&
                     now > *found->keys->expires - renewed_before && now >= found->attempt;
    if (!found->keys) {
        found->keys = look(context);
    } else if (old) {
        found->attempt = now + attempt_after;
        try {
            found->keys = look(context);
        } catch (const Error& error) {
            // They are still good for some minutes.
            if (error.code() == SHF_E_CANCELLED || now >= *found->keys->expires) throw;
        }
    }
    return found->keys->keys;
}

bool renew_aws_keys(const AwsKeys& keys, const SourceContext& context) {
    if (of_options(context.options)) return false;
    const auto found = found_for(context.options);
    const auto locked = lock(*found, context.cancel);
    // Another thread may have renewed them.
    if (!found->keys || found->keys->keys == keys) found->keys = look(context);
    return !(found->keys->keys == keys);
}

}  // namespace shf
