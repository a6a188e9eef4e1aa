// Google Cloud Storage: objects by its XML API, lists by its JSON API, and both by the first with
// HMAC keys.
#pragma once

#include "http/http_store.h"
#include "store/gs_credentials.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

// "gs://bucket/key": the key stands as it is, nothing in it is encoded.
struct GsUrl {
    std::string bucket, key;
};
// Throws Error(USAGE).
GsUrl parse_gs_url(std::string_view url);

// Its targets are gs_target(). Throws Error(USAGE) for options that do not fit.
std::shared_ptr<HttpStore> gs_store(const SourceContext& context, GsRights rights = GsRights::read);
std::string gs_target(const GsUrl& object);
// Of the JSON API. `token`: of the page before; empty: none.
std::string gs_list_target(const GsUrl& wanted, std::string_view token);

// The server that STORAGE_EMULATOR_HOST names, as a URL: "host:port" has no scheme there.
std::string gs_emulator(std::string_view host);

// All keys that begin with that of `wanted`, in the order of their bytes. Throws Error.
std::vector<std::string> list_gs(const GsUrl& wanted, const SourceContext& context);

}  // namespace shf
