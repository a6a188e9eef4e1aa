// Where keys for AWS come from, in this order: the environment, the web identity of the
// environment, the profile (a role, single sign-on, keys, a program), the container, the machine. A
// profile that an option names comes before the environment. Anonymous access is no part of it.
#pragma once

#include "io/source_context.h"
#include "store/aws_config.h"
#include "store/s3_xml.h"

namespace shf {

// Throws Error: AUTH when there are none.
TemporaryKeys find_aws_keys(const AwsConfig& config, const SourceContext& context);

// Of the container or the machine that this process runs on. Nothing: there are none here.
std::optional<TemporaryKeys> container_keys(const SourceContext& context);
std::optional<TemporaryKeys> machine_keys(const SourceContext& context);

// Keys in the JSON of `what`, under these names. Throws Error(AUTH); the message shows nothing of
// it.
struct KeyNames {
    const char* access_key;
    const char* secret_key;
    const char* session_token;
    const char* expires;
};
TemporaryKeys parse_json_keys(const std::string& text, const char* what, const KeyNames& names);

// The words of a command, as a shell without expansions takes them apart. Throws Error(USAGE).
std::vector<std::string> words_of_command(const std::string& command);

}  // namespace shf
