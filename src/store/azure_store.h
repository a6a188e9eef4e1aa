// Azure Blob Storage.
#pragma once

#include "http/http_store.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

// What a URL names: "az://CONTAINER/BLOB", "abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/BLOB" and
// abfss://, where the name of the blob stands as it is, or
// "https://ACCOUNT.blob.core.windows.net/CONTAINER/BLOB", where it is percent-encoded.
struct AzureUrl {
    std::string account{};   // empty: not in the URL
    std::string endpoint{};  // likewise
    std::string container{};
    std::string blob{};    // decoded
    std::string target{};  // of requests: "/CONTAINER/BLOB", percent-encoded
    std::string start{};   // the URL up to the blob
    bool web = false;      // https://
};
// Throws Error(USAGE).
AzureUrl parse_azure_url(std::string_view url);
// The URL of a blob whose name begins with that of `near`, which `url` was parsed to: it begins
// with `url` as it is written.
std::string azure_url_of(std::string_view blob, const AzureUrl& near, std::string_view url);

// Its targets are AzureUrl::target and azure_list_target(). Of URLs of the web what is public is
// read without credentials when options and environment name none; az_anonymous allows that for all
// others. Throws Error(USAGE) for options that do not fit.
std::shared_ptr<HttpStore> azure_store(const AzureUrl& url, const SourceContext& context);
std::string azure_list_target(std::string_view container, std::string_view prefix,
                              std::string_view marker);

// The names of all blobs that begin with that of `url`, in the order of their bytes. Throws Error.
std::vector<std::string> list_azure(const AzureUrl& url, const SourceContext& context);

}  // namespace shf
