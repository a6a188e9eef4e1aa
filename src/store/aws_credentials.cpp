#include "store/aws_credentials.h"

#include "core/error.h"
#include "core/options.h"
#include "io/pipe.h"
#include "store/aws_chain.h"
#include "store/aws_config.h"
#include "store/renewed.h"
#include "store/settings.h"

#include <string>

namespace shf {

namespace {

constinit Renewed<AwsKeys> all_keys;

// Of the environment, what is for AWS, and where programs are.
std::string settings_of(const Options& options) {
    return options.s3_profile + '\0' + options.s3_region + '\0' +
           (pipes_refused(options) ? "s" : "") + '\0' + version_of_file(aws_config_path()) + '\0' +
           version_of_file(aws_credentials_path()) + '\0' +
           variables_with({"AWS_", "HOME=", "PATH="});
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
    return all_keys.get(settings_of(options), context.cancel, [&] { return look(context); });
}

bool renew_aws_keys(const AwsKeys& keys, const SourceContext& context) {
    if (of_options(context.options)) return false;
    return all_keys.renew(settings_of(context.options), keys, context.cancel,
                          [&] { return look(context); });
}

}  // namespace shf
