#include "store/aws_credentials.h"

#include "core/cancel.h"
#include "core/error.h"
#include "core/options.h"
#include "core/per_process.h"
#include "io/pipe.h"
#include "store/aws_chain.h"

#include <array>
#include <chrono>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace shf {

namespace {

// A request that begins with keys ends before they expire.
constexpr int64_t renewed_before = 5 * 60;  // seconds
// How long keys near their end are used on when they cannot be renewed, before the next attempt.
constexpr int64_t attempt_after = 30;

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

// What the keys depend on.
std::string settings_of(const Options& options) {
    constexpr std::array names = {
        "HOME",
        "AWS_PROFILE",
        "AWS_CONFIG_FILE",
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_ROLE_ARN",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_EC2_METADATA_SERVICE_ENDPOINT",
        "AWS_EC2_METADATA_DISABLED",
        "AWS_ENDPOINT_URL_STS",
        "AWS_ENDPOINT_URL",
    };
    std::string result = options.s3_profile + '\0' + (pipes_refused(options) ? "s" : "");
    for (const char* const name : names) result += '\0' + environment(name);
    return result;
}

std::shared_ptr<Found> found_for(const Options& options) {
    AllFound& all = all_found.get();
    const std::string settings = settings_of(options);
    const std::lock_guard lock(all.mutex);
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
