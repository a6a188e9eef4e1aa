// The files that the aws command keeps its settings in.
#pragma once

#include "store/settings.h"

#include <map>
#include <string>
#include <string_view>

namespace shf {

struct Options;

// The settings of one section. Those of a nested block have its name in front: "s3.endpoint_url".
using AwsSection = std::map<std::string, std::string>;
// Sections by what stands in the brackets, with single spaces and without quotes: "profile x".
using AwsFile = std::map<std::string, AwsSection>;

// `name` is the file's, for messages, which show nothing of its text. Throws Error(USAGE).
AwsFile parse_aws_file(std::string_view text, const std::string& name);

// What the environment, the options and the two files say, for one profile.
struct AwsConfig {
    std::string profile;      // its name
    bool profile_asked;       // by option or environment: it must be there
    bool profile_of_options;  // by option: before the keys of the environment
    AwsFile config, credentials;

    // Of the profile `name`, those of the credentials file first; NULL: there is none.
    [[nodiscard]] const AwsSection* find(const std::string& name) const;
    [[nodiscard]] const AwsSection* find_credentials(const std::string& name) const;
    // Of our profile; empty: not set.
    [[nodiscard]] std::string setting(const std::string& key) const;
    [[nodiscard]] std::string region(const Options& options) const;  // empty: not set
    // Where `service` ("s3", "sts") is, as environment and profile have it; empty: at AWS.
    [[nodiscard]] std::string endpoint(std::string_view service) const;
};

// Where the two files are; empty: nowhere.
std::string aws_config_path();
std::string aws_credentials_path();

// Reads the files, which need not be there. Throws Error(USAGE, IO).
AwsConfig aws_config(const Options& options);

}  // namespace shf
