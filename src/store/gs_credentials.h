// Access tokens for Google Cloud Storage, by the application default credentials: the file of the
// option gs_credentials, that of GOOGLE_APPLICATION_CREDENTIALS, the login of gcloud, the machine.
// The option gs_token comes before all. Anonymous access is no part of it.
#pragma once

#include "io/source_context.h"

#include <cstdint>
#include <string>

namespace shf {

enum class GsRights : uint8_t { read, write };

// Throws Error: AUTH when there is none.
std::string gs_token(const SourceContext& context, GsRights rights);
// After a server has refused `token`: looks for another one. False: there is none.
bool renew_gs_token(const std::string& token, const SourceContext& context, GsRights rights);

}  // namespace shf
