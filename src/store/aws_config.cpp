#include "store/aws_config.h"

#include "core/error.h"
#include "core/lowered.h"
#include "core/options.h"
#include "core/trimmed.h"

#include <algorithm>
#include <cctype>

namespace shf {

namespace {

constexpr std::string_view ini_blanks = " \t\r\f\v";

// The words of a section's name, which may be quoted, with single spaces.
std::string section_name(std::string_view text) {
    std::string result;
    char quote = 0;
    for (const char c : trimmed(text, ini_blanks)) {
        if (c == quote) {
            quote = 0;
        } else if (quote == 0 && (c == '"' || c == '\'')) {
            quote = c;
        } else if (quote == 0 && ini_blanks.find(c) != ini_blanks.npos) {
            if (!result.ends_with(' ')) result += ' ';
        } else {
            result += c;
        }
    }
    return result;
}

class Parser {
  public:
    explicit Parser(const std::string& name) : name_(name) {}

    void line(std::string_view text) {
        ++number_;
        const std::string_view content = trimmed(text, ini_blanks);
        if (content.empty() || content[0] == '#' || content[0] == ';') return;
        const bool indented = ini_blanks.find(text[0]) != ini_blanks.npos;
        if (!indented && content[0] == '[') return section(content);
        if (!section_) refuse("a setting before the first section");
        if (indented && !parent_.empty()) return nested(content);
        // Some write their profiles indented.
        if (content[0] == '[') return section(content);
        const auto [key, value] = setting(content);
        parent_ = value.empty() ? key : std::string();
        (*section_)[key] = value;
    }
    AwsFile take() { return std::move(file_); }

  private:
    [[noreturn]] void refuse(const char* cause) const {
        throw Error(SHF_E_USAGE,
                    "\"" + escape(name_) + "\" line " + std::to_string(number_) + ": " + cause,
                    "write sections as [profile NAME], and settings as NAME = VALUE");
    }

    void section(std::string_view content) {
        const size_t end = content.find(']');
        if (end == content.npos) refuse("a section without ]");
        section_ = &file_[section_name(content.substr(1, end - 1))];
        parent_.clear();
    }

    std::pair<std::string, std::string> setting(std::string_view content) const {
        const size_t equals = content.find('=');
        if (equals == content.npos) refuse("this is no setting");
        const std::string key = lowered(trimmed(content.substr(0, equals), ini_blanks));
        if (key.empty()) refuse("a setting without a name");
        return {key, std::string(trimmed(content.substr(equals + 1), ini_blanks))};
    }

    void nested(std::string_view content) {
        const auto [key, value] = setting(content);
        (*section_)[parent_ + "." + key] = value;
    }

    const std::string& name_;
    uint64_t number_ = 0;
    AwsFile file_;
    AwsSection* section_ = nullptr;
    std::string parent_;  // the setting without a value that a nested block belongs to
};

std::string path_of_setting(const char* variable, std::string_view fallback) {
    const std::string given = environment(variable);
    return given.starts_with("~/") ? home_path(given.substr(2))
           : given.empty()         ? home_path(fallback)
                                   : given;
}

AwsFile read_aws_file(const std::string& path) {
    std::string text;
    return read_small_file(path, text) ? parse_aws_file(text, path) : AwsFile();
}

std::string value_of(const AwsSection* section, const std::string& key) {
    if (!section) return {};
    const auto at = section->find(key);
    return at == section->end() ? std::string() : at->second;
}

}  // namespace

AwsFile parse_aws_file(std::string_view text, const std::string& name) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    Parser parser(name);
    while (!text.empty()) {
        const size_t end = std::min(text.find('\n'), text.size());
        parser.line(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return parser.take();
}

const AwsSection* AwsConfig::find(const std::string& name) const {
    auto at = config.find("profile " + name);
    if (at == config.end() && name == "default") at = config.find(name);
    return at == config.end() ? nullptr : &at->second;
}

const AwsSection* AwsConfig::find_credentials(const std::string& name) const {
    const auto at = credentials.find(name);
    return at == credentials.end() ? nullptr : &at->second;
}

std::string AwsConfig::setting(const std::string& key) const {
    return value_of(find(profile), key);
}

std::string AwsConfig::region(const Options& options) const {
    if (!options.s3_region.empty()) return options.s3_region;
    for (const char* const name : {"AWS_REGION", "AWS_DEFAULT_REGION"})
        if (std::string region = environment(name); !region.empty()) return region;
    return setting("region");
}

std::string AwsConfig::endpoint(std::string_view service) const {
    if (lowered(environment("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")) == "true") return {};
    std::string variable = "AWS_ENDPOINT_URL_";
    for (const char c : service)
        variable += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    for (const char* const name : {variable.c_str(), "AWS_ENDPOINT_URL"})
        if (std::string url = environment(name); !url.empty()) return url;
    if (const auto at = config.find("services " + setting("services")); at != config.end())
        if (std::string url = value_of(&at->second, std::string(service) + ".endpoint_url");
            !url.empty())
            return url;
    return setting("endpoint_url");
}

std::string aws_config_path() {
    return path_of_setting("AWS_CONFIG_FILE", ".aws/config");
}

std::string aws_credentials_path() {
    return path_of_setting("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials");
}

AwsConfig aws_config(const Options& options) {
    AwsConfig result;
    result.profile = options.s3_profile;
    result.profile_of_options = !result.profile.empty();
    if (result.profile.empty()) result.profile = environment("AWS_PROFILE");
    result.profile_asked = !result.profile.empty();
    if (result.profile.empty()) result.profile = "default";
    result.config = read_aws_file(aws_config_path());
    result.credentials = read_aws_file(aws_credentials_path());
    if (result.profile_asked && !result.find(result.profile) &&
        !result.find_credentials(result.profile))
        throw Error(SHF_E_AUTH, "there is no profile \"" + escape(result.profile) + "\"",
                    "look at the option s3_profile, at AWS_PROFILE and at ~/.aws/config");
    return result;
}

}  // namespace shf
