#include "store/azure_credentials.h"

#include "core/error.h"
#include "core/lowered.h"
#include "core/options.h"
#include "http/http_request.h"
#include "http/libcrypto.h"
#include "store/azure_token.h"
#include "store/endpoint.h"
#include "store/settings.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

namespace shf {

namespace {

constinit Renewed<std::string> tokens;

constexpr const char* option_string = "the option az_connection_string";
constexpr const char* variable_string = "AZURE_STORAGE_CONNECTION_STRING";

// The account that every emulator has; its key is published.
constexpr const char* emulator_account = "devstoreaccount1";
constexpr const char* emulator_key =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
constexpr const char* emulator_endpoint = "http://127.0.0.1:10000/devstoreaccount1";

std::string endpoint_of(std::string url, const char* where) {
    return checked_endpoint(std::move(url), "Azure Storage",
                            (std::string("look at ") + where).c_str());
}

// It becomes part of a host name and of a header.
void check_account(const std::string& name) {
    const auto fits = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    };
    if (name.size() > 63 || !std::all_of(name.begin(), name.end(), fits))
        throw Error(SHF_E_USAGE, "\"" + escape(name) + "\" is not the name of a storage account",
                    "it has lower-case letters and digits alone");
}

AzureKeys of_key(const std::string& base64, const char* where) {
    const auto key = base64_decode(base64);
    if (!key || key->empty())
        throw Error(SHF_E_USAGE, std::string(where) + " is not base64",
                    "copy the whole key of the account, with the = at its end");
    return {.account_key = *key};
}

AzureKeys of_sas(std::string_view text, const char* where) {
    if (text.starts_with('?')) text.remove_prefix(1);
    const auto fits = [](char c) {
        return c > ' ' && static_cast<unsigned char>(c) < 0x7f && c != '?' && c != '#';
    };
    if ((!text.starts_with("sig=") && text.find("&sig=") == text.npos) ||
        !std::all_of(text.begin(), text.end(), fits))
        throw Error(SHF_E_USAGE, std::string(where) + " is not a shared access signature",
                    "it is text like sv=...&sig=..., as a URL has it behind its question mark");
    return {.sas = std::string(text)};
}

// Nothing: it has no credentials.
std::optional<AzureKeys> of_connection(const AzureConnection& connection, const char* where) {
    if (!connection.account_key.empty()) return of_key(connection.account_key, where);
    if (!connection.sas.empty()) return of_sas(connection.sas, where);
    return std::nullopt;
}

std::optional<AzureConnection> connection_of_options(const Options& options) {
    if (options.az_connection_string.empty()) return std::nullopt;
    return parse_azure_connection(options.az_connection_string, option_string);
}

std::optional<AzureConnection> connection_of_environment() {
    const std::string text = environment(variable_string);
    if (text.empty()) return std::nullopt;
    return parse_azure_connection(text, variable_string);
}

int options_given(const Options& options) {
    return static_cast<int>(!options.az_account_key.empty()) +
           static_cast<int>(!options.az_sas.empty()) +
           static_cast<int>(!options.az_connection_string.empty());
}

void check_options(const Options& options) {
    if (options_given(options) + static_cast<int>(options.az_anonymous) > 1)
        throw Error(SHF_E_USAGE,
                    "more than one of the options az_account_key, az_sas, az_connection_string "
                    "and az_anonymous",
                    "give one of them");
}

// What the environment has for accounts without a name is not for those that URLs name: it would be
// given to whomever a list of URLs names.
bool environment_fits(const AzureAccount& account, const std::string& its_account) {
    return its_account.empty() ? !account.of_url : its_account == account.name;
}

std::optional<AzureKeys> fixed_keys(const AzureAccount& account, const Options& options) {
    if (!options.az_account_key.empty())
        return of_key(options.az_account_key, "the option az_account_key");
    if (!options.az_sas.empty()) return of_sas(options.az_sas, "the option az_sas");
    if (const auto connection = connection_of_options(options)) {
        const auto keys = of_connection(*connection, option_string);
        if (keys) return keys;
        throw Error(SHF_E_USAGE, "the option az_connection_string has no credentials",
                    "it has AccountKey or SharedAccessSignature");
    }
    if (const auto connection = connection_of_environment();
        connection && environment_fits(account, connection->account))
        if (auto keys = of_connection(*connection, variable_string)) return keys;
    if (!environment_fits(account, environment("AZURE_STORAGE_ACCOUNT"))) return std::nullopt;
    if (const std::string key = environment("AZURE_STORAGE_KEY"); !key.empty())
        return of_key(key, "AZURE_STORAGE_KEY");
    if (const std::string sas = environment("AZURE_STORAGE_SAS_TOKEN"); !sas.empty())
        return of_sas(sas, "AZURE_STORAGE_SAS_TOKEN");
    return std::nullopt;
}

AzureToken token_or_refuse(const SourceContext& context) {
    if (auto token = find_azure_token(context)) return *token;
    throw Error(SHF_E_AUTH, "no credentials for Azure Storage were found",
                "set AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN or "
                "AZURE_STORAGE_CONNECTION_STRING, or give this machine an identity; public "
                "containers need az_anonymous=true");
}

AzureKeys of_token(const SourceContext& context) {
    return {.token = tokens.get(azure_token_settings(), context.cancel,
                                [&] { return token_or_refuse(context); })};
}

}  // namespace

AzureConnection parse_azure_connection(std::string_view text, const char* where) {
    const auto refuse = [&](const std::string& cause) {
        throw Error(SHF_E_USAGE, std::string(where) + ": " + cause,
                    "copy the whole connection string: AccountName=...;AccountKey=...");
    };
    std::map<std::string, std::string> values;
    while (!text.empty()) {
        const size_t end = std::min(text.find(';'), text.size());
        const std::string_view part = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (part.empty()) continue;
        const size_t equal = part.find('=');
        if (equal == part.npos || equal == 0) refuse("a part of it is not Name=Value");
        const std::string name = lowered(part.substr(0, equal));
        const std::string_view value = part.substr(equal + 1);
        if (std::any_of(value.begin(), value.end(),
                        [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7f; }))
            refuse("blanks or control characters in it");
        if (!values.emplace(name, value).second) refuse("a name is in it twice");
    }
    if (lowered(values["usedevelopmentstorage"]) == "true")
        return {.account = emulator_account,
                .account_key = emulator_key,
                .endpoint = emulator_endpoint};
    AzureConnection result = {.account = values["accountname"],
                              .account_key = values["accountkey"],
                              .sas = values["sharedaccesssignature"],
                              .endpoint = values["blobendpoint"]};
    check_account(result.account);
    if (!result.endpoint.empty()) {
        result.endpoint = endpoint_of(result.endpoint, where);
    } else if (!result.account.empty()) {
        const std::string protocol = lowered(values["defaultendpointsprotocol"]),
                          suffix = values["endpointsuffix"];
        result.endpoint =
            endpoint_of((protocol.empty() ? "https" : protocol) + "://" + result.account +
                            ".blob." + (suffix.empty() ? "core.windows.net" : suffix),
                        where);
    } else {
        refuse("neither AccountName nor BlobEndpoint");
    }
    return result;
}

AzureAccount azure_account(const std::string& of_url, const std::string& endpoint_of_url,
                           const SourceContext& context) {
    const Options& options = context.options;
    check_options(options);
    const auto by_option = connection_of_options(options);
    AzureAccount account;
    account.name = options.az_account;
    if (by_option && !by_option->account.empty()) {
        if (account.name.empty()) account.name = by_option->account;
        if (account.name != by_option->account)
            throw Error(SHF_E_USAGE,
                        "the options az_account and az_connection_string are of two accounts",
                        "leave az_account out");
    }
    check_account(account.name);
    if (!of_url.empty()) {
        if (!account.name.empty() && account.name != of_url)
            throw Error(SHF_E_USAGE,
                        "this URL is of the account " + escape(of_url) +
                            ", and the options are for " + escape(account.name),
                        "read the shards of each account by a stream of its own");
        account.of_url = account.name.empty();
        account.name = of_url;
    }
    const bool explicitly = options_given(options) > 0 || options.az_anonymous;
    if (account.name.empty()) account.name = environment("AZURE_STORAGE_ACCOUNT");
    auto by_variable = std::optional<AzureConnection>();
    if (account.name.empty() || !explicitly) by_variable = connection_of_environment();
    if (account.name.empty() && by_variable) account.name = by_variable->account;
    check_account(account.name);

    const auto fits = [&](const std::optional<AzureConnection>& connection) {
        return connection && !connection->endpoint.empty() &&
               (connection->account == account.name ||
                (connection->account.empty() && of_url.empty()));
    };
    if (!options.az_endpoint.empty())
        account.endpoint = endpoint_of(options.az_endpoint, "the option az_endpoint");
    else if (fits(by_option))
        account.endpoint = by_option->endpoint;
    else if (fits(by_variable))
        account.endpoint = by_variable->endpoint;
    else if (!endpoint_of_url.empty())
        account.endpoint = endpoint_of_url;
    else if (!account.name.empty())
        account.endpoint = "https://" + account.name + ".blob.core.windows.net";
    else
        throw Error(SHF_E_USAGE, "nothing says of which storage account this container is",
                    "give az_account, or set AZURE_STORAGE_ACCOUNT");
    // As an emulator has it: http://127.0.0.1:10000/ACCOUNT.
    if (const std::string server = server_of(account.endpoint);
        account.name.empty() && account.endpoint.size() > server.size()) {
        account.name = account.endpoint.substr(server.size() + 1);
        check_account(account.name);
    }
    return account;
}

std::optional<AzureKeys> configured_azure_keys(const AzureAccount& account,
                                               const SourceContext& context) {
    if (auto keys = fixed_keys(account, context.options)) return keys;
    if (azure_token_is_configured()) return of_token(context);
    return std::nullopt;
}

AzureKeys azure_keys(const AzureAccount& account, const SourceContext& context) {
    if (auto keys = fixed_keys(account, context.options)) return *keys;
    return of_token(context);
}

bool renew_azure_keys(const AzureKeys& keys, const SourceContext& context) {
    return tokens.renew(azure_token_settings(), keys.token, context.cancel,
                        [&] { return token_or_refuse(context); });
}

}  // namespace shf
