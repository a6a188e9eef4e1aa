#include "store/gs_credentials.h"

#include "core/error.h"
#include "core/options.h"
#include "core/times.h"
#include "http/http_fetch.h"
#include "http/libcrypto.h"
#include "store/gs_json.h"
#include "store/near_service.h"
#include "store/renewed.h"
#include "store/settings.h"
#include "store/sigv4.h"

#include <nlohmann/json.hpp>

#include <array>
#include <ctime>
#include <utility>

namespace shf {

namespace {

constexpr const char* read_scope = "https://www.googleapis.com/auth/devstorage.read_only";
constexpr const char* write_scope = "https://www.googleapis.com/auth/devstorage.read_write";
// Of who acts as another account: for the service that gives the tokens of others.
constexpr const char* acting_scope = "https://www.googleapis.com/auth/cloud-platform";
constexpr size_t most_gs_token = size_t{1} << 20;
constexpr int64_t lasts = 3600;  // seconds, the most that is given
// What answers for a machine may first have to ask for the token itself.
constexpr std::chrono::milliseconds gs_patience{10'000};

// RFC 4648, 5, without padding, as JSON Web Tokens have it (RFC 7515, 2).
std::string base64_of_url(std::string_view data) {
    constexpr std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    std::string result;
    for (size_t at = 0; at < data.size(); at += 3) {
        const std::string_view part = data.substr(at, 3);
        uint32_t bits = 0;
        for (size_t i = 0; i < 3; ++i)
            bits = bits << 8U | (i < part.size() ? static_cast<unsigned char>(part[i]) : 0U);
        for (size_t i = 0; i <= part.size(); ++i) result += digits[bits >> (18 - 6 * i) & 63U];
    }
    return result;
}

// A server that gives tokens.
class GsTokenService final : public HttpStore {
  public:
    // The references must outlive it.
    GsTokenService(const char* name, const HttpRequest& request) : name_(name), request_(request) {}

    void prepare(HttpRequest& request, const SourceContext& /*context*/) override {
        request.url = request_.target;
        request.headers = request_.headers;
    }
    [[nodiscard]] Error error(const HttpAnswer& answer, std::string_view body) const override {
        if (answer.status >= 500 || answer.status == 429) return answer.error();
        const GsFault fault = parse_gs_fault(body);
        const char* help = "look at the account, its key, and its rights";
        if (fault.code == "invalid_grant")
            help =
                "make the credentials again (gcloud auth application-default login, or a new key "
                "of the account), and look at the clock of this machine";
        return Error(SHF_E_AUTH,
                     std::string(name_) + " gives no token: the server answers " +
                         std::to_string(answer.status) + said(fault.code, " ") +
                         said(fault.message, ": "),
                     help);
    }
    [[nodiscard]] bool follows_redirects() const override { return false; }

  private:
    [[nodiscard]] static std::string said(const std::string& text, const char* before) {
        return text.empty() ? text : before + escape(text);
    }

    const char* name_;
    const HttpRequest& request_;
};

// No message shows what is in `secrets`.
GsToken ask(const char* name, HttpRequest request, std::vector<std::string> secrets,
            const SourceContext& context) {
    request.secrets = std::move(secrets);
    GsTokenService service(name, request);
    const HttpReply reply = http_fetch(request, service, context, most_gs_token);
    try {
        return parse_gs_token(reply.body, seconds_now());
    } catch (const Error& error) {
        throw Error(error.code(), std::string(name) + ": " + error.fault().cause,
                    error.fault().help);
    }
}

GsToken ask_with_form(const char* name, const std::string& url, const Fields& form,
                      std::vector<std::string> secrets, const SourceContext& context) {
    HttpRequest request;
    request.method = "POST";
    request.target = url;
    request.body = canonical_query(form);
    request.headers = {"Content-Type: application/x-www-form-urlencoded"};
    return ask(name, std::move(request), std::move(secrets), context);
}

// RFC 7523, 2.1.
GsToken of_service(const GsAccount& account, const char* scope, const std::string& file,
                   const SourceContext& context) {
    nlohmann::json header = {{"alg", "RS256"}, {"typ", "JWT"}};
    if (!account.key_id.empty()) header["kid"] = account.key_id;
    const nlohmann::json claims = {{"iss", account.email},
                                   {"scope", scope},
                                   {"aud", account.token_url},
                                   {"iat", seconds_now()},
                                   {"exp", seconds_now() + lasts}};
    constexpr auto replace = nlohmann::json::error_handler_t::replace;
    std::string token = base64_of_url(header.dump(-1, ' ', false, replace)) + "." +
                        base64_of_url(claims.dump(-1, ' ', false, replace));
    try {
        token += "." + base64_of_url(rsa_sha256(account.private_key, token));
    } catch (const Error& error) {
        if (error.code() != SHF_E_AUTH) throw;
        throw Error(
            SHF_E_AUTH,
            "the credentials in \"" + escape(file) + "\" cannot be used: " + error.fault().cause,
            error.fault().help);
    }
    return ask_with_form(
        "the server of the service account", account.token_url,
        {{"assertion", token}, {"grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"}},
        {token}, context);
}

GsToken of_user(const GsAccount& account, const SourceContext& context) {
    return ask_with_form("the server of the user", account.token_url,
                         {{"client_id", account.client_id},
                          {"client_secret", account.client_secret},
                          {"grant_type", "refresh_token"},
                          {"refresh_token", account.refresh_token}},
                         {account.refresh_token, account.client_secret}, context);
}

std::string subject_of(const GsAccount& account, const SourceContext& context) {
    std::string text;
    if (!account.subject_file.empty()) {
        if (!read_small_file(account.subject_file, text))
            throw Error(SHF_E_AUTH, "there is no file \"" + escape(account.subject_file) + "\"",
                        "look at credential_source in the file of credentials");
    } else {
        HttpRequest request;
        request.target = request.url = account.subject_url;
        request.headers = account.subject_headers;
        request.limit = gs_patience;
        HttpReply reply = http_ask(request, context, most_gs_token);
        if (reply.answer.status != 200)
            throw Error(
                SHF_E_AUTH,
                "the source of the external account answers " + std::to_string(reply.answer.status),
                "look at credential_source in the file of credentials");
        text = std::move(reply.body);
    }
    return subject_token(text, account.subject_field);
}

// RFC 8693, 2.1.
GsToken of_external(const GsAccount& account, const char* scope, const SourceContext& context) {
    const std::string subject = subject_of(account, context);
    return ask_with_form("the token exchange of the external account", account.token_url,
                         {{"audience", account.audience},
                          {"grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"},
                          {"requested_token_type", "urn:ietf:params:oauth:token-type:access_token"},
                          {"scope", account.impersonation_url.empty() ? scope : acting_scope},
                          {"subject_token", subject},
                          {"subject_token_type", account.subject_type}},
                         {subject}, context);
}

GsToken acting_as(const GsAccount& account, const char* scope, const std::string& by,
                  const SourceContext& context) {
    HttpRequest request;
    request.method = "POST";
    request.target = account.impersonation_url;
    request.headers = {"Content-Type: application/json", "Authorization: Bearer " + by};
    request.body = nlohmann::json({{"delegates", account.delegates},
                                   {"scope", {scope}},
                                   {"lifetime", std::to_string(lasts) + "s"}})
                       .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return ask("the account to act as", request, {by}, context);
}

GsToken of_account(const GsAccount& account, const char* scope, const std::string& file,
                   const SourceContext& context) {
    switch (account.kind) {
        case GsAccountKind::service: return of_service(account, scope, file, context);
        case GsAccountKind::user: return of_user(account, context);
        case GsAccountKind::external: {
            GsToken token = of_external(account, scope, context);
            if (account.impersonation_url.empty()) return token;
            return acting_as(account, scope, token.value, context);
        }
        case GsAccountKind::impersonated:
            return acting_as(account, scope,
                             of_account(*account.source, acting_scope, file, context).value,
                             context);
    }
    return {};
}

// Nothing: this machine is none of Google's, or has no account.
std::optional<GsToken> of_machine(const char* scope, const SourceContext& context) {
    if (const std::string no = environment("NO_GCE_CHECK");
        no == "true" || no == "True" || no == "1")
        return std::nullopt;
    std::string host = environment("GCE_METADATA_HOST");
    if (host.empty()) host = environment("GCE_METADATA_ROOT");
    // What metadata.google.internal is, without asking for it by name.
    if (host.empty()) host = "169.254.169.254";
    if (host.find_first_of("/?#@ \r\n\t") != host.npos)
        throw Error(SHF_E_USAGE, "GCE_METADATA_HOST is no host",
                    "write it as HOST or HOST:PORT, or take it out of the environment");
    const auto request_of = [&](const char* path) {
        HttpRequest request = near_request("http://" + host + path);
        request.headers = {"Metadata-Flavor: Google"};
        return request;
    };
    const auto is_google = [](const HttpReply& reply) {
        return reply.answer.header("metadata-flavor") == "Google";
    };
    const auto there = ask_near(request_of("/"), context);
    if (!there || !is_google(*there)) return std::nullopt;
    HttpRequest request =
        request_of("/computeMetadata/v1/instance/service-accounts/default/token?scopes=");
    request.url += percent_encode(scope);
    request.limit = gs_patience;
    const HttpReply reply = http_ask(request, context, most_gs_token);
    if (reply.answer.status == 404) return std::nullopt;  // a machine without an account
    if (passes(reply.answer)) throw reply.answer.error();
    if (reply.answer.status != 200 || !is_google(reply))
        throw Error(SHF_E_AUTH,
                    "the metadata server of this machine gives no token: it answers " +
                        std::to_string(reply.answer.status),
                    "look at the service account of the machine or pod, and its scopes");
    return parse_gs_token(reply.body, seconds_now());
}

// Empty: there is none.
std::string account_path(const Options& options) {
    if (!options.gs_credentials.empty()) return options.gs_credentials;
    return environment("GOOGLE_APPLICATION_CREDENTIALS");
}

std::string login_path() {
    const std::string folder = environment("CLOUDSDK_CONFIG");
    constexpr const char* name = "application_default_credentials.json";
    return folder.empty() ? home_path(std::string(".config/gcloud/") + name) : folder + "/" + name;
}

GsToken look(const char* scope, const SourceContext& context) {
    std::string path = account_path(context.options), text;
    if (!path.empty()) {
        if (!read_small_file(path, text))
            throw Error(SHF_E_AUTH, "there is no file \"" + escape(path) + "\"",
                        "look at the option gs_credentials, and at GOOGLE_APPLICATION_CREDENTIALS");
    } else {
        path = login_path();
        if (path.empty() || !read_small_file(path, text)) path.clear();
    }
    if (!path.empty()) return of_account(parse_gs_account(text, path), scope, path, context);
    if (auto token = of_machine(scope, context)) return *token;
    throw Error(SHF_E_AUTH, "no credentials for Google Cloud Storage were found",
                "run gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS; "
                "public buckets need gs_anonymous=true");
}

constinit Renewed<std::string> all_tokens;

const char* scope_of(GsRights rights) {
    return rights == GsRights::write ? write_scope : read_scope;
}

std::string settings_of(const char* scope, const Options& options) {
    const std::string path = account_path(options);
    return std::string(scope) + '\0' + path + '\0' +
           version_of_file(path.empty() ? login_path() : path) + '\0' +
           variables_with(
               {"GOOGLE_", "CLOUDSDK_CONFIG=", "GCE_METADATA_", "NO_GCE_CHECK=", "HOME="});
}

}  // namespace

std::string gs_token(const SourceContext& context, GsRights rights) {
    if (const std::string& token = context.options.gs_token; !token.empty()) {
        if (token.find_first_of("\r\n") != token.npos)
            throw Error(SHF_E_USAGE, "option gs_token: an end of line in it",
                        "give the token without the end of its line");
        return token;
    }
    const char* const scope = scope_of(rights);
    return all_tokens.get(settings_of(scope, context.options), context.cancel,
                          [&] { return look(scope, context); });
}

bool renew_gs_token(const std::string& token, const SourceContext& context, GsRights rights) {
    if (!context.options.gs_token.empty()) return false;
    const char* const scope = scope_of(rights);
    return all_tokens.renew(settings_of(scope, context.options), token, context.cancel,
                            [&] { return look(scope, context); });
}

}  // namespace shf
