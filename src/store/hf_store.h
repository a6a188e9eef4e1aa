// Repositories of the Hugging Face Hub.
#pragma once

#include "http/http_store.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

// "hf://datasets/OWNER/NAME@REVISION/PATH", "hf://spaces/...", and "hf://OWNER/NAME/PATH" for
// models, as huggingface_hub writes them. The path stands as it is, nothing in it is encoded; in
// the revision "/" may be written as %2F.
struct HfUrl {
    std::string repository;  // "datasets/owner/name"; "owner/name" of a model
    std::string revision;    // of Git; empty: not given, which is main
    std::string path;
};
// Throws Error(USAGE).
HfUrl parse_hf_url(std::string_view url);

// Its targets are those of hf_target(). Throws Error(USAGE) for options that do not fit.
std::shared_ptr<HttpStore> hf_store(const HfUrl& url, const SourceContext& context);
std::string hf_target(const HfUrl& url);

// The paths of all files that begin with that of `url`, in the order of their bytes. Throws Error.
std::vector<std::string> list_hf(const HfUrl& url, const SourceContext& context);

// The paths of files on one page of a folder's list, in JSON. Throws Error(NET_PERMANENT).
std::vector<std::string> parse_hf_page(const std::string& body);
// The target of the next page in a header Link (RFC 8288) of the server `endpoint`; empty: there is
// none. Throws Error(NET_PERMANENT) for another server.
std::string next_hf_page(std::string_view link, const std::string& endpoint);

}  // namespace shf
