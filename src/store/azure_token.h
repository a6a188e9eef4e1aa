// Tokens of Microsoft Entra ID for Azure Storage: of a workload, of a program with a secret, of App
// Service, of the machine.
#pragma once

#include "io/source_context.h"
#include "store/renewed.h"

#include <optional>
#include <string>
#include <string_view>

namespace shf {

using AzureToken = Expiring<std::string>;

// Whether the environment names a place of tokens; a machine gives them without that.
bool azure_token_is_configured();
// Asks the first of these places that there is; nothing: there is none. Waits for servers. Throws
// Error.
std::optional<AzureToken> find_azure_token(const SourceContext& context);
// All that it depends on.
std::string azure_token_settings();

// The token in the JSON of `what`, received at `now`. Throws Error(AUTH); the message shows nothing
// of it.
AzureToken parse_azure_token(std::string_view text, const char* what, int64_t now);

// Whether secrets may be sent there: over TLS, or to this machine and its own network.
bool is_safe_service(const std::string& url);

}  // namespace shf
