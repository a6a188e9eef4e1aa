// Keys of the container or the machine that this process runs on.
#include "core/error.h"
#include "core/per_process.h"
#include "http/http_fetch.h"
#include "io/descriptor.h"
#include "store/aws_chain.h"

#include <nlohmann/json.hpp>

#include <array>
#include <map>
#include <mutex>

namespace shf {

namespace {

// These services are on the same machine, or not there at all.
constexpr std::chrono::milliseconds patience{1000};
constexpr size_t most_bytes = size_t{1} << 20;

HttpRequest near_request(std::string url) {
    HttpRequest request;
    request.target = url;
    request.url = std::move(url);
    request.near = true;
    request.connect_limit = patience;
    request.limit = patience;
    return request;
}

std::string header(const char* name, const std::string& value) {
    if (value.find_first_of("\r\n") != value.npos)
        throw Error(SHF_E_USAGE, "a token for metadata with an end of line in it",
                    "look at AWS_CONTAINER_AUTHORIZATION_TOKEN");
    return std::string(name) + ": " + value;
}

// Nobody else may be asked over plain HTTP, so that no variable sends the token abroad.
bool may_ask(const std::string& url) {
    if (url.starts_with("https://")) return true;
    if (!url.starts_with("http://")) return false;
    std::string host = url.substr(7, url.find_first_of("/?#", 7) - 7);
    if (host.find('@') != host.npos) return false;
    if (host.starts_with('['))
        host = host.substr(0, host.find(']') + 1);
    else
        host = host.substr(0, host.find(':'));
    constexpr std::array hosts = {"localhost",     "127.0.0.1",      "[::1]",
                                  "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"};
    for (const char* const known : hosts)
        if (host == known) return true;
    return false;
}

bool is_set(const char* name) {
    const std::string value = environment(name);
    return value == "true" || value == "TRUE" || value == "True" || value == "1";
}

// Machines that are not of AWS are not asked for each shard.
struct Absent {
    std::mutex mutex;
    std::map<std::string, Clock::time_point> until;  // by server
};
constinit PerProcess<Absent> absent;
constexpr std::chrono::minutes remembered{1};

bool known_as_absent(const std::string& server) {
    Absent& all = absent.get();
    const std::lock_guard lock(all.mutex);
    const auto at = all.until.find(server);
    return at != all.until.end() && Clock::now() < at->second;
}

void remember_as_absent(const std::string& server) {
    Absent& all = absent.get();
    const std::lock_guard lock(all.mutex);
    all.until[server] = Clock::now() + remembered;
}

constexpr KeyNames metadata_names = {.access_key = "AccessKeyId",
                                     .secret_key = "SecretAccessKey",
                                     .session_token = "Token",
                                     .expires = "Expiration"};

}  // namespace

TemporaryKeys parse_json_keys(const std::string& text, const char* what, const KeyNames& names) {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    const auto value = [&](const char* name) -> std::string {
        if (!json.is_object()) return {};
        const auto at = json.find(name);
        if (at == json.end()) return {};
        if (at->is_number_integer()) return std::to_string(at->get<int64_t>());
        return at->is_string() ? at->get<std::string>() : std::string();
    };
    TemporaryKeys result;
    result.keys = {.access_key = value(names.access_key),
                   .secret_key = value(names.secret_key),
                   .session_token = value(names.session_token)};
    result.expires = parse_time(value(names.expires));
    if (result.keys.access_key.empty() || result.keys.secret_key.empty())
        throw Error(SHF_E_AUTH, std::string("no credentials in ") + what,
                    "look at what gives them; they are JSON with " + std::string(names.access_key) +
                        " and " + names.secret_key);
    return result;
}

std::optional<TemporaryKeys> container_keys(const SourceContext& context) {
    const std::string relative = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    std::string url = environment("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    if (!relative.empty()) url = "http://169.254.170.2" + relative;
    if (url.empty()) return std::nullopt;
    if (!may_ask(url))
        throw Error(SHF_E_USAGE,
                    "AWS_CONTAINER_CREDENTIALS_FULL_URI is not https, and not on this machine",
                    "correct the variable, or take it out of the environment");
    HttpRequest request = near_request(url);
    std::string token = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    if (const std::string file = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
        !file.empty()) {
        if (!read_small_file(file, token))
            throw Error(SHF_E_AUTH, "there is no file \"" + escape(file) + "\"",
                        "look at AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
        while (token.ends_with('\n') || token.ends_with('\r')) token.pop_back();
    }
    if (!token.empty()) request.headers.push_back(header("Authorization", token));
    const HttpReply reply = http_ask(request, context, most_bytes);
    if (reply.answer.status != 200)
        throw Error(SHF_E_AUTH,
                    "the container's credentials: the server answers " +
                        std::to_string(reply.answer.status),
                    "look at the role of the task or pod, and at AWS_CONTAINER_CREDENTIALS_*");
    return parse_json_keys(reply.body, "the answer of the container's server", metadata_names);
}

std::optional<TemporaryKeys> machine_keys(const SourceContext& context) {
    if (is_set("AWS_EC2_METADATA_DISABLED")) return std::nullopt;
    std::string server = environment("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    if (server.empty())
        server = environment("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE") == "IPv6"
                     ? "http://[fd00:ec2::254]"
                     : "http://169.254.169.254";
    while (server.ends_with('/')) server.pop_back();
    if (known_as_absent(server)) return std::nullopt;
    HttpReply token;
    try {
        HttpRequest request = near_request(server + "/latest/api/token");
        request.method = "PUT";
        request.headers.emplace_back("X-aws-ec2-metadata-token-ttl-seconds: 21600");
        token = http_ask(request, context, most_bytes);
    } catch (const Error& error) {
        // Nobody is there: this is no machine of AWS.
        if (error.code() == SHF_E_NET_TRANSIENT || error.code() == SHF_E_NET_PERMANENT ||
            error.code() == SHF_E_TIMEOUT) {
            remember_as_absent(server);
            return std::nullopt;
        }
        throw;
    }
    if (token.answer.status != 200) return std::nullopt;
    const auto ask = [&](const std::string& path) {
        HttpRequest request = near_request(server + path);
        request.headers.push_back(header("X-aws-ec2-metadata-token", token.body));
        return http_ask(request, context, most_bytes);
    };
    const std::string place = "/latest/meta-data/iam/security-credentials/";
    const HttpReply roles = ask(place);
    if (roles.answer.status == 404) return std::nullopt;  // a machine without a role
    std::string role = roles.body.substr(0, roles.body.find_first_of("\r\n"));
    const HttpReply keys = ask(place + percent_encode(role));
    if (roles.answer.status != 200 || keys.answer.status != 200)
        throw Error(SHF_E_AUTH, "the metadata service of this machine gives no credentials",
                    "look at the role of the machine");
    return parse_json_keys(keys.body, "the answer of the machine's metadata service",
                           metadata_names);
}

}  // namespace shf
