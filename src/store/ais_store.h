// Buckets of AIStore, through its proxies.
#pragma once

#include "http/http_store.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

// "ais://BUCKET/NAME"; with "?archpath=MEMBER" at its end one member of the archive NAME. The name
// stands as it is, nothing in it is encoded.
struct AisUrl {
    std::string bucket, name;
    std::string member;  // empty: the whole object
};
// Throws Error(USAGE).
AisUrl parse_ais_url(std::string_view url);

// Its targets are those of ais_target(). Throws Error(USAGE) for options that do not fit.
std::shared_ptr<HttpStore> ais_store(const SourceContext& context);
std::string ais_target(const AisUrl& url, const SourceContext& context);

// The names of all objects that begin with that of `url`, in the order of their bytes. Throws
// Error.
std::vector<std::string> list_ais(const AisUrl& url, const SourceContext& context);

// One page of a list, in JSON; `uuid` names the list in requests for its other pages.
struct AisPage {
    std::vector<std::string> names;
    std::string next, uuid;
};
// Throws Error(NET_PERMANENT).
AisPage parse_ais_page(const std::string& body);

}  // namespace shf
