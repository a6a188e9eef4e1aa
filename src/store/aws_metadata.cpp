// Keys of the container or the machine that this process runs on.
#include "core/error.h"
#include "io/descriptor.h"
#include "store/aws_chain.h"
#include "store/json_text.h"
#include "store/near_service.h"

#include <array>

namespace shf {

namespace {

constexpr size_t most_metadata = size_t{1} << 20;
constexpr const char* token_help = "look at AWS_CONTAINER_AUTHORIZATION_TOKEN";

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

constexpr KeyNames metadata_names = {.access_key = "AccessKeyId",
                                     .secret_key = "SecretAccessKey",
                                     .session_token = "Token",
                                     .expires = "Expiration"};

}  // namespace

TemporaryKeys parse_json_keys(const std::string& text, const char* what, const KeyNames& names) {
    const auto json = parse_json(text);
    const auto value = [&](const char* name) -> std::string {
        if (!json.is_object()) return {};
        const auto at = json.find(name);
        if (at == json.end()) return {};
        if (at->is_number_integer()) return std::to_string(at->get<int64_t>());
        return at->is_string() ? at->get<std::string>() : std::string();
    };
    TemporaryKeys result;
    result.value = {.access_key = value(names.access_key),
                    .secret_key = value(names.secret_key),
                    .session_token = value(names.session_token)};
    result.expires = parse_time(value(names.expires));
    if (result.value.access_key.empty() || result.value.secret_key.empty())
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
    if (!token.empty()) request.headers.push_back(near_header("Authorization", token, token_help));
    const HttpReply reply = http_ask(request, context, most_metadata);
    if (passes(reply.answer)) throw reply.answer.error();
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
    HttpRequest wanted = near_request(server + "/latest/api/token");
    wanted.method = "PUT";
    wanted.headers.emplace_back("X-aws-ec2-metadata-token-ttl-seconds: 21600");
    const auto token = ask_near(wanted, context);
    if (token && passes(token->answer)) throw token->answer.error();
    if (!token || token->answer.status != 200) return std::nullopt;
    const auto ask = [&](const std::string& path) {
        HttpRequest request = near_request(server + path);
        request.headers.push_back(near_header("X-aws-ec2-metadata-token", token->body,
                                              "look at what answers for the metadata service"));
        HttpReply reply = http_ask(request, context, most_metadata);
        if (passes(reply.answer)) throw reply.answer.error();
        return reply;
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
