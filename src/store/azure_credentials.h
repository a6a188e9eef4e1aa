// Which storage account is meant, and what authorizes requests to it.
#pragma once

#include "io/source_context.h"

#include <optional>
#include <string>
#include <string_view>

namespace shf {

// A connection string of Azure Storage.
struct AzureConnection {
    std::string account{};
    std::string account_key{};  // base64
    std::string sas{};
    std::string endpoint{};  // of blobs; empty: not said
};
// Throws Error(USAGE), whose message has nothing of it but names; `where` says from where it is.
AzureConnection parse_azure_connection(std::string_view text, const char* where);

struct AzureAccount {
    std::string name;      // empty: only the endpoint is known
    std::string endpoint;  // without a slash at its end
    bool of_url = false;   // the URL names it
};
// `of_url` and `endpoint_of_url`: what the URL says, or empty. Throws Error(USAGE) when nothing
// says which account, or when options are for another one.
AzureAccount azure_account(const std::string& of_url, const std::string& endpoint_of_url,
                           const SourceContext& context);

// At most one is not empty.
struct AzureKeys {
    std::string account_key{};  // decoded
    std::string sas{};          // as it stands in a query
    std::string token{};        // of Entra ID

    bool operator==(const AzureKeys&) const = default;
    [[nodiscard]] bool none() const { return *this == AzureKeys(); }
};
// The first of: options, environment, tokens (see azure_token.h). Waits for servers. Throws Error:
// AUTH when there are none, USAGE, NET_*, CANCELLED.
AzureKeys azure_keys(const AzureAccount& account, const SourceContext& context);
// The same, but of what options and environment name: a machine is not asked. Nothing: they name
// nothing.
std::optional<AzureKeys> configured_azure_keys(const AzureAccount& account,
                                               const SourceContext& context);
// After a server has refused a token: looks for another one. False: there is none.
bool renew_azure_keys(const AzureKeys& keys, const SourceContext& context);

}  // namespace shf
