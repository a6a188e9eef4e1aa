#include "store/aws_chain.h"

#include "core/cancel.h"
#include "core/error.h"
#include "core/options.h"
#include "core/times.h"
#include "http/http_fetch.h"
#include "http/libcrypto.h"
#include "io/descriptor.h"
#include "io/pipe.h"
#include "io/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <set>

extern "C" char** environ;

namespace shf {

namespace {

constexpr const char* profile_help = "look at the profile in ~/.aws/config";
constexpr size_t most_aws_answer = size_t{1} << 20;
constexpr int64_t process_limit = 60;  // seconds

Error bad_profile(const std::string& name, const std::string& cause) {
    return Error(SHF_E_AUTH, "profile \"" + escape(name) + "\": " + cause, profile_help);
}

// One request, signed or not, of services that give keys.
class KeyService final : public HttpStore {
  public:
    KeyService(const char* name, HttpRequest request, const AwsKeys* keys, std::string region)
        : name_(name), request_(std::move(request)), region_(std::move(region)) {
        if (keys) keys_ = *keys;
    }

    void prepare(HttpRequest& request, const SourceContext& /*context*/) override {
        request.url = request_.target;
        request.headers = request_.headers;
        if (!keys_) return;
        const std::string server = server_of(request.url);
        const int64_t time = seconds_now();
        Fields fields = {{"host", server.substr(server.find("://") + 3)},
                         {"content-type", "application/x-www-form-urlencoded"},
                         {"x-amz-date", amz_date(time)}};
        if (!keys_->session_token.empty())
            fields.emplace_back("x-amz-security-token", keys_->session_token);
        const SigV4Request signed_request = {.method = request.method,
                                             .path = request.url.substr(server.size()),
                                             .headers = fields,
                                             .payload_hash = hex(text_of(sha256(request.body)))};
        for (size_t i = 1; i < fields.size(); ++i)
            request.headers.push_back(fields[i].first + ": " + fields[i].second);
        request.headers.push_back(
            "Authorization: " +
            sigv4(signed_request, *keys_, {.region = region_, .service = "sts", .time = time}));
    }

    [[nodiscard]] Error error(const HttpAnswer& answer, std::string_view body) const override {
        if (answer.status >= 500 || answer.status == 429) return answer.error();
        const S3Fault fault = parse_s3_fault(body);
        // It says so with status 400.
        const bool busy = fault.code == "Throttling" || fault.code == "ThrottlingException" ||
                          fault.code == "IDPCommunicationError";
        return Error(
            busy ? SHF_E_THROTTLED : SHF_E_AUTH,
            std::string(name_) + " gives no credentials: the server answers " +
                std::to_string(answer.status) +
                (fault.code.empty() ? "" : " " + escape(fault.code)) +
                (fault.message.empty() ? "" : ": " + escape(fault.message)) +
                (fault.request_id.empty() ? "" : " (request " + escape(fault.request_id) + ")"),
            busy ? "begin fewer processes at once, or later"
                 : "look at the role and who may assume it");
    }
    [[nodiscard]] bool follows_redirects() const override { return false; }

  private:
    const char* name_;
    const HttpRequest request_;
    std::optional<AwsKeys> keys_;
    const std::string region_;
};

class Chain {
  public:
    Chain(const AwsConfig& config, const SourceContext& context)
        : config_(config), context_(context) {}

    TemporaryKeys find() {
        if (!config_.profile_of_options) {
            if (auto keys = of_environment()) return *keys;
            if (auto keys =
                    web_identity(environment("AWS_WEB_IDENTITY_TOKEN_FILE"),
                                 environment("AWS_ROLE_ARN"), environment("AWS_ROLE_SESSION_NAME")))
                return *keys;
        }
        if (auto keys = of_profile(config_.profile)) return *keys;
        if (auto keys = container_keys(context_)) return *keys;
        if (auto keys = machine_keys(context_)) return *keys;
        throw Error(SHF_E_AUTH, "no credentials for S3 were found",
                    "run aws configure, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; public "
                    "buckets need s3_anonymous=true");
    }

  private:
    // One profile, from both files; what the credentials file says comes first.
    [[nodiscard]] AwsSection merged(const std::string& name) const {
        AwsSection result;
        if (const AwsSection* const section = config_.find_credentials(name)) result = *section;
        if (const AwsSection* const section = config_.find(name))
            result.insert(section->begin(), section->end());
        return result;
    }

    static std::string value(const AwsSection& section, const char* key) {
        const auto at = section.find(key);
        return at == section.end() ? std::string() : at->second;
    }

    static std::optional<TemporaryKeys> of_environment() {
        const std::string access = environment("AWS_ACCESS_KEY_ID");
        if (access.empty()) return std::nullopt;
        const std::string secret = environment("AWS_SECRET_ACCESS_KEY");
        if (secret.empty())
            throw Error(SHF_E_AUTH, "AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not",
                        "set both or none");
        return TemporaryKeys{.value = {access, secret, environment("AWS_SESSION_TOKEN")},
                             .expires = {}};
    }

    static std::optional<TemporaryKeys> in(const std::string& name, const AwsSection& section) {
        const std::string access = value(section, "aws_access_key_id");
        if (access.empty()) return std::nullopt;
        const std::string secret = value(section, "aws_secret_access_key");
        if (secret.empty()) throw bad_profile(name, "aws_secret_access_key is missing");
        return TemporaryKeys{.value = {access, secret, value(section, "aws_session_token")},
                             .expires = {}};
    }

    std::optional<TemporaryKeys> of_profile(const std::string& name) {
        const AwsSection profile = merged(name);
        if (!value(profile, "role_arn").empty()) return of_role(name, profile);
        if (!value(profile, "sso_session").empty() || !value(profile, "sso_start_url").empty())
            return of_sign_on(name, profile);
        if (const AwsSection* const section = config_.find_credentials(name))
            if (auto keys = in(name, *section)) return keys;
        if (const std::string command = value(profile, "credential_process"); !command.empty())
            return of_process(name, command);
        return in(name, profile);
    }

    TemporaryKeys of_role(const std::string& name, const AwsSection& profile) {
        if (!visited_.insert(name).second)
            throw bad_profile(name, "its source_profile leads back to it");
        const std::string role = value(profile, "role_arn");
        if (const std::string file = value(profile, "web_identity_token_file"); !file.empty())
            return *web_identity(file, role, value(profile, "role_session_name"));
        if (!value(profile, "mfa_serial").empty())
            throw bad_profile(name,
                              "a role with mfa_serial wants a code that nobody can type here");
        const std::string from = value(profile, "source_profile");
        const std::string kind = value(profile, "credential_source");
        if (from.empty() == kind.empty())
            throw bad_profile(name,
                              "a role needs source_profile or credential_source, and not both");
        std::optional<TemporaryKeys> source;
        if (from == name) {
            source = in(name, profile);
        } else if (!from.empty()) {
            source = of_profile(from);
        } else if (kind == "Environment") {
            source = of_environment();
        } else if (kind == "EcsContainer") {
            source = container_keys(context_);
        } else if (kind == "Ec2InstanceMetadata") {
            source = machine_keys(context_);
        } else {
            throw bad_profile(name,
                              "credential_source is none of Environment, EcsContainer and "
                              "Ec2InstanceMetadata");
        }
        if (!source) throw bad_profile(name, "there are no keys to assume its role with");
        Fields form = {{"Action", "AssumeRole"},
                       {"RoleArn", role},
                       {"RoleSessionName", session_name(value(profile, "role_session_name"))},
                       {"Version", "2011-06-15"}};
        add(form, "ExternalId", value(profile, "external_id"));
        add(form, "DurationSeconds", value(profile, "duration_seconds"));
        return ask_sts(form, &source->value);
    }

    static void add(Fields& form, const char* name, const std::string& text) {
        if (!text.empty()) form.emplace_back(name, text);
    }

    static std::string session_name(const std::string& name) {
        return name.empty() ? "shardfeed-" + std::to_string(seconds_now()) : name;
    }

    std::optional<TemporaryKeys> web_identity(const std::string& file, const std::string& role,
                                              const std::string& name) {
        if (file.empty()) return std::nullopt;
        if (role.empty())
            throw Error(SHF_E_AUTH, "a web identity without a role",
                        "set AWS_ROLE_ARN beside AWS_WEB_IDENTITY_TOKEN_FILE");
        std::string token;
        if (!read_small_file(file, token))
            throw Error(SHF_E_AUTH, "there is no file \"" + escape(file) + "\"",
                        "look at AWS_WEB_IDENTITY_TOKEN_FILE or web_identity_token_file");
        while (token.ends_with('\n') || token.ends_with('\r')) token.pop_back();
        return ask_sts({{"Action", "AssumeRoleWithWebIdentity"},
                        {"RoleArn", role},
                        {"RoleSessionName", session_name(name)},
                        {"Version", "2011-06-15"},
                        {"WebIdentityToken", token}},
                       nullptr);
    }

    TemporaryKeys ask_sts(const Fields& form, const AwsKeys* keys) {
        std::string region = config_.region(context_.options);
        if (region.empty()) region = "us-east-1";
        std::string server = config_.endpoint("sts");
        while (server.ends_with('/')) server.pop_back();
        if (server.empty())
            server = "https://sts." + region + ".amazonaws.com" +
                     (region.starts_with("cn-") ? ".cn" : "");
        HttpRequest request;
        request.method = "POST";
        request.target = server + "/";
        request.body = canonical_query(form);
        request.headers = {"Accept: text/xml"};
        for (const auto& [field, text] : form)
            if (field == "WebIdentityToken") request.secrets.emplace_back(text);
        if (keys) request.secrets.push_back(keys->session_token);
        KeyService service("STS", request, keys, region);
        return parse_sts_keys(http_fetch(request, service, context_, most_aws_answer).body);
    }

    TemporaryKeys of_sign_on(const std::string& name, const AwsSection& profile) {
        AwsSection session = profile;
        const std::string session_of = value(profile, "sso_session");
        if (!session_of.empty()) {
            const auto at = config_.config.find("sso-session " + session_of);
            if (at == config_.config.end())
                throw bad_profile(name, "there is no [sso-session " + escape(session_of) + "]");
            session.insert(at->second.begin(), at->second.end());
        }
        const std::string region = value(session, "sso_region");
        if (region.empty() || value(profile, "sso_account_id").empty() ||
            value(profile, "sso_role_name").empty())
            throw bad_profile(name, "sso_region, sso_account_id and sso_role_name are wanted");
        const std::string place = home_path(
            ".aws/sso/cache/" +
            sha1_hex(session_of.empty() ? value(session, "sso_start_url") : session_of) + ".json");
        const Error login(SHF_E_AUTH,
                          "profile \"" + escape(name) + "\": the single sign-on is over",
                          "run aws sso login --profile " + escape(name));
        std::string text;
        if (!read_small_file(place, text)) throw login;
        const auto json = nlohmann::json::parse(text, nullptr, false);
        if (!json.is_object() || !json.contains("accessToken") ||
            !json["accessToken"].is_string() || !json.contains("expiresAt") ||
            !json["expiresAt"].is_string())
            throw login;
        const auto expires = parse_time(json["expiresAt"].get<std::string>());
        const auto token = json["accessToken"].get<std::string>();
        if (!expires || *expires <= seconds_now() || token.find_first_of("\r\n") != token.npos)
            throw login;
        std::string server = config_.endpoint("sso");
        while (server.ends_with('/')) server.pop_back();
        if (server.empty()) server = "https://portal.sso." + region + ".amazonaws.com";
        HttpRequest request;
        request.target = server + "/federation/credentials?" +
                         canonical_query({{"role_name", value(profile, "sso_role_name")},
                                          {"account_id", value(profile, "sso_account_id")}});
        request.headers = {"x-amz-sso_bearer_token: " + token};
        request.secrets = {token};
        KeyService service("single sign-on", request, nullptr, region);
        const auto answer = nlohmann::json::parse(
            http_fetch(request, service, context_, most_aws_answer).body, nullptr, false);
        const bool whole = answer.is_object() && answer.contains("roleCredentials") &&
                           answer["roleCredentials"].is_object();
        const auto keys = whole ? answer["roleCredentials"] : nlohmann::json();
        TemporaryKeys result = parse_json_keys(keys.dump(), "the answer of single sign-on",
                                               {.access_key = "accessKeyId",
                                                .secret_key = "secretAccessKey",
                                                .session_token = "sessionToken",
                                                .expires = ""});
        if (keys.contains("expiration") && keys["expiration"].is_number_integer())
            result.expires = keys["expiration"].get<int64_t>() / 1000;
        return result;
    }

    TemporaryKeys of_process(const std::string& name, const std::string& command) {
        if (pipes_refused(context_.options))
            throw Error(
                SHF_E_USAGE,
                "profile \"" + escape(name) + "\": credential_process is refused in secure mode",
                "secure mode comes from the option secure or from SHARDFEED_SECURE=1 in "
                "the environment");
        const std::string text = output_of(name, words_of_command(command));
        const auto json = nlohmann::json::parse(text, nullptr, false);
        if (json.is_object() && json.contains("Version") && json["Version"] != 1)
            throw bad_profile(name, "credential_process gives another version than 1");
        return parse_json_keys(text, "the output of credential_process",
                               {.access_key = "AccessKeyId",
                                .secret_key = "SecretAccessKey",
                                .session_token = "SessionToken",
                                .expires = "Expiration"});
    }

    // Its standard error is not ours to show.
    std::string output_of(const std::string& name, std::vector<std::string> words) {
        if (words.empty()) throw bad_profile(name, "credential_process is empty");
        const std::string program = program_of(words[0]);
        if (program.empty())
            throw bad_profile(name, "there is no program \"" + escape(words[0]) + "\"");
        std::array<int, 2> ends = {-1, -1};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw Error::system("pipe", errno);
        const Descriptor out(ends[0]);
        pid_t child = -1;
        {
            const Descriptor in(ends[1]);
            child = spawn({.program = program.c_str(),
                           .words = words,
                           .out = in.get(),
                           .environment = environ});
        }
        std::string text;
        try {
            const int64_t end = seconds_now() + process_limit;
            read_output(name, out.get(), end, text);
            if (wait_for(name, child, end) != 0)
                throw bad_profile(name, "credential_process fails");
        } catch (...) {
            ::kill(-child, SIGKILL);
            while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
            }
            throw;
        }
        return text;
    }

    void check_time(const std::string& name, int64_t end) const {
        context_.cancel.check();
        if (seconds_now() > end) throw bad_profile(name, "credential_process takes more than 60 s");
    }

    void read_output(const std::string& name, int fd, int64_t end, std::string& text) const {
        std::array<char, 4096> piece;
        for (;;) {
            check_time(name, end);
            pollfd wanted = {.fd = fd, .events = POLLIN, .revents = 0};
            if (::poll(&wanted, 1, 20) <= 0) continue;
            const ssize_t count = ::read(fd, piece.data(), piece.size());
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) throw Error::system("read the output of credential_process", errno);
            if (count == 0) return;
            text.append(piece.data(), static_cast<size_t>(count));
            if (text.size() > most_aws_answer)
                throw bad_profile(name, "credential_process writes more than 1 MiB");
        }
    }

    // It may close its output and run on.
    int wait_for(const std::string& name, pid_t child, int64_t end) const {
        for (;;) {
            int status = 0;
            const pid_t ended = ::waitpid(child, &status, WNOHANG);
            if (ended == child) return status;
            // A program that ignores SIGCHLD gets no status: the output says whether it is good.
            if (ended < 0 && errno != EINTR) return 0;
            check_time(name, end);
            ::poll(nullptr, 0, 5);
        }
    }

    // As a shell looks for it.
    static std::string program_of(const std::string& word) {
        if (word.find('/') != word.npos) return ::access(word.c_str(), X_OK) == 0 ? word : "";
        std::string path = environment("PATH");
        while (!path.empty()) {
            const size_t end = std::min(path.find(':'), path.size());
            const std::string program = path.substr(0, end) + "/" + word;
            if (end > 0 && ::access(program.c_str(), X_OK) == 0) return program;
            path.erase(0, std::min(end + 1, path.size()));
        }
        return {};
    }

    const AwsConfig& config_;
    const SourceContext& context_;
    std::set<std::string> visited_;
};

}  // namespace

std::vector<std::string> words_of_command(const std::string& command) {
    std::vector<std::string> words;
    bool in_word = false;
    char quote = 0;
    for (size_t i = 0; i < command.size(); ++i) {
        const char c = command[i];
        if (quote == 0 && (c == ' ' || c == '\t')) {
            in_word = false;
            continue;
        }
        if (!in_word) words.emplace_back();
        in_word = true;
        if (c == quote) {
            quote = 0;
        } else if (quote == 0 && (c == '"' || c == '\'')) {
            quote = c;
        } else if (c == '\\' && quote != '\'' && i + 1 < command.size()) {
            words.back() += command[++i];
        } else {
            words.back() += c;
        }
    }
    if (quote != 0)
        throw Error(SHF_E_USAGE, "credential_process has a quote without its end", profile_help);
    return words;
}

TemporaryKeys find_aws_keys(const AwsConfig& config, const SourceContext& context) {
    return Chain(config, context).find();
}

}  // namespace shf
