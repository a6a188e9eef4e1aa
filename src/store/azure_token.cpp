#include "store/azure_token.h"

#include "core/error.h"
#include "core/times.h"
#include "http/http_address.h"
#include "http/http_fetch.h"
#include "store/json_text.h"
#include "store/near_service.h"
#include "store/settings.h"
#include "store/sigv4.h"

#include <algorithm>
#include <charconv>
#include <ctime>

namespace shf {

namespace {

constexpr const char* storage = "https://storage.azure.com/";
constexpr size_t most_azure_token = size_t{1} << 20;
// Of the metadata service, which makes a token when it has none.
constexpr std::chrono::milliseconds azure_patience{10'000};
constexpr const char* identity_help =
    "give the machine, app or pod an identity with the role Storage Blob Data Reader, and set "
    "AZURE_CLIENT_ID when it has several";

// What a service says of a refusal: "invalid_client: AADSTS700016: Application ...".
std::string reason_of(std::string_view body) {
    const auto json = parse_json(body);
    std::string result;
    for (const char* const name : {"error", "error_description", "message", "Message"}) {
        if (!json.is_object()) break;
        const auto at = json.find(name);
        if (at == json.end() || !at->is_string()) continue;
        const auto text = at->get<std::string>();
        result += (result.empty() ? "" : ": ") + text.substr(0, text.find_first_of("\r\n"));
    }
    return result;
}

// One request of services that give tokens.
class AzureTokenService final : public HttpStore {
  public:
    // `secret` must not be shown, wherever it comes back.
    AzureTokenService(const char* name, const char* help, std::vector<std::string> headers,
                      std::string secret)
        : name_(name), help_(help), headers_(std::move(headers)), secret_(std::move(secret)) {}

    void prepare(HttpRequest& request, const SourceContext& /*context*/) override {
        request.url = request.target;
        request.headers = headers_;
        request.secrets = {secret_};
    }
    [[nodiscard]] Error error(const HttpAnswer& answer, std::string_view body) const override {
        // A machine's identity that is new is not known at once: 404 and 410.
        const bool soon = answer.status == 429 || answer.status >= 500 ||
                          (!secret_.empty() ? false : answer.status == 404 || answer.status == 410);
        const std::string reason = reason_of(body);
        return Error(
            soon ? (answer.status == 429 ? SHF_E_THROTTLED : SHF_E_NET_TRANSIENT) : SHF_E_AUTH,
            std::string(name_) + " gives no token: the server answers " +
                std::to_string(answer.status) + (reason.empty() ? "" : " " + escape(reason)),
            soon ? "try again later" : help_);
    }
    [[nodiscard]] bool follows_redirects() const override { return false; }

  private:
    const char* name_;
    const char* help_;
    const std::vector<std::string> headers_;
    const std::string secret_;
};

std::string secret_of_file(const std::string& path) {
    std::string text;
    if (!read_small_file(path, text))
        throw Error(SHF_E_AUTH, "there is no file \"" + escape(path) + "\"",
                    "look at AZURE_FEDERATED_TOKEN_FILE");
    while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
    return text;
}

// It becomes part of a URL.
bool is_tenant(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '.';
    });
}

// Of Entra ID, for a client that proves itself by `proof`.
AzureToken of_client(const char* name, Fields proof, const std::string& secret,
                     const SourceContext& context) {
    const std::string client = environment("AZURE_CLIENT_ID"),
                      tenant = environment("AZURE_TENANT_ID");
    if (client.empty() || !is_tenant(tenant))
        throw Error(SHF_E_AUTH,
                    std::string(name) +
                        " needs AZURE_CLIENT_ID and AZURE_TENANT_ID, and one of "
                        "them is missing or no identifier",
                    "set both");
    std::string authority = environment("AZURE_AUTHORITY_HOST");
    if (authority.empty()) authority = "https://login.microsoftonline.com";
    if (authority.find("://") == authority.npos) authority = "https://" + authority;
    while (authority.ends_with('/')) authority.pop_back();
    if (!is_safe_service(authority))
        throw Error(SHF_E_USAGE, "AZURE_AUTHORITY_HOST is not https, and not on this machine",
                    "correct the variable, or take it out of the environment");
    proof.emplace_back("client_id", client);
    proof.emplace_back("grant_type", "client_credentials");
    proof.emplace_back("scope", std::string(storage) + ".default");
    HttpRequest request;
    request.method = "POST";
    request.target = authority + "/" + tenant + "/oauth2/v2.0/token";
    request.body = canonical_query(proof);
    AzureTokenService service(name,
                              "look at AZURE_CLIENT_ID, AZURE_TENANT_ID and what proves the client",
                              {"Content-Type: application/x-www-form-urlencoded"}, secret);
    return parse_azure_token(http_fetch(request, service, context, most_azure_token).body,
                             "the answer of Entra ID", seconds_now());
}

std::string with_client(std::string url) {
    const std::string client = environment("AZURE_CLIENT_ID");
    return client.empty() ? url : url + "&client_id=" + percent_encode(client);
}

AzureToken of_app_service(const std::string& endpoint, const SourceContext& context) {
    if (!is_safe_service(endpoint))
        throw Error(SHF_E_USAGE,
                    "IDENTITY_ENDPOINT is not https, and no address of this machine's network",
                    "correct the variable, or take it out of the environment");
    const std::string secret = environment("IDENTITY_HEADER");
    HttpRequest request = near_request(
        with_client(endpoint + "?api-version=2019-08-01&resource=" + percent_encode(storage)));
    request.limit = azure_patience;
    AzureTokenService service("the identity of the app", identity_help,
                              {near_header("X-IDENTITY-HEADER", secret, "look at IDENTITY_HEADER")},
                              secret);
    return parse_azure_token(http_fetch(request, service, context, most_azure_token).body,
                             "the answer of the app's server", seconds_now());
}

std::optional<AzureToken> of_machine(const SourceContext& context) {
    std::string server = environment("AZURE_POD_IDENTITY_AUTHORITY_HOST");
    if (server.empty()) server = "http://169.254.169.254";
    while (server.ends_with('/')) server.pop_back();
    HttpRequest request = near_request(
        with_client(server + "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=" +
                    percent_encode(storage)));
    request.limit = azure_patience;
    request.headers.emplace_back("Metadata: true");
    auto reply = ask_near(request, context);
    if (!reply) return std::nullopt;
    if (reply->answer.status != 200) {
        AzureTokenService service("the identity of the machine", identity_help, request.headers,
                                  {});
        reply = http_fetch(request, service, context, most_azure_token);
    }
    return parse_azure_token(reply->body, "the answer of the machine's metadata service",
                             seconds_now());
}

}  // namespace

bool is_safe_service(const std::string& url) {
    if (url.find_first_of("@ \t\r\n\"") != url.npos) return false;
    if (url.starts_with("https://")) return url.size() > 8;
    constexpr std::string_view http = "http://";
    if (!url.starts_with(http)) return false;
    std::string host = url.substr(http.size(), url.find_first_of("/?#", http.size()) - http.size());
    if (host.starts_with('['))
        host = host.substr(1, std::min(host.find(']'), host.size()) - 1);
    else
        host = host.substr(0, host.find(':'));
    const bool address =
        !host.empty() && host.find_first_not_of("0123456789abcdefABCDEF:.") == host.npos &&
        (host.find(':') != host.npos || host.find_first_not_of("0123456789.") == host.npos);
    return host == "localhost" || (address && !is_public_address(host));
}

bool azure_token_is_configured() {
    return !environment("AZURE_FEDERATED_TOKEN_FILE").empty() ||
           !environment("AZURE_CLIENT_SECRET").empty() || !environment("IDENTITY_ENDPOINT").empty();
}

std::optional<AzureToken> find_azure_token(const SourceContext& context) {
    if (const std::string file = environment("AZURE_FEDERATED_TOKEN_FILE"); !file.empty()) {
        const std::string assertion = secret_of_file(file);
        return of_client(
            "the identity of the workload",
            {{"client_assertion", assertion},
             {"client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"}},
            assertion, context);
    }
    if (const std::string secret = environment("AZURE_CLIENT_SECRET"); !secret.empty())
        return of_client("AZURE_CLIENT_SECRET", {{"client_secret", secret}}, secret, context);
    if (const std::string endpoint = environment("IDENTITY_ENDPOINT");
        !endpoint.empty() && !environment("IDENTITY_HEADER").empty())
        return of_app_service(endpoint, context);
    return of_machine(context);
}

std::string azure_token_settings() {
    return variables_with({"AZURE_", "IDENTITY_"}) +
           version_of_file(environment("AZURE_FEDERATED_TOKEN_FILE"));
}

AzureToken parse_azure_token(std::string_view text, const char* what, int64_t now) {
    const auto json = parse_json(text);
    // Some services write numbers as text.
    const auto seconds = [&](const char* name) -> std::optional<int64_t> {
        constexpr int64_t most = int64_t{1} << 40;
        const auto at = json.find(name);
        int64_t value = -1;
        if (at == json.end()) return std::nullopt;
        if (at->is_number_unsigned() && at->get<uint64_t>() <= static_cast<uint64_t>(most)) {
            value = at->get<int64_t>();
        } else if (at->is_string()) {
            const auto written = at->get<std::string>();
            const char* const end = written.data() + written.size();
            const auto [stop, error] = std::from_chars(written.data(), end, value);
            if (error != std::errc() || stop != end) return std::nullopt;
        }
        return value >= 0 && value <= most ? std::optional(value) : std::nullopt;
    };
    AzureToken result;
    if (json.is_object()) {
        const auto at = json.find("access_token");
        if (at != json.end() && at->is_string()) result.value = at->get<std::string>();
        result.expires = seconds("expires_on");
        if (const auto after = seconds("expires_in"); after && !result.expires)
            result.expires = now + *after;
    }
    const bool printable = std::all_of(result.value.begin(), result.value.end(), [](char c) {
        return c > ' ' && static_cast<unsigned char>(c) < 0x7f;
    });
    if (result.value.empty() || !printable)
        throw Error(SHF_E_AUTH, std::string("no token in ") + what,
                    "look at what gives it; it is JSON with access_token");
    return result;
}

}  // namespace shf
