// The hosts of Azure Blob Storage: their URLs on the web are those of a store, which has lists.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shf {

struct AzureHost {
    std::string account;
    std::string blob_host;  // where blobs are read, also when the host is that of Data Lake Storage
};
// "ACCOUNT.blob.core.windows.net", "ACCOUNT.dfs.core.windows.net", and those of the national clouds
// and of DNS zones; nothing for all others. Who owns the host gets credentials for Azure.
std::optional<AzureHost> azure_host(std::string_view host);

// Whether this is "https://ACCOUNT.blob.core.windows.net/CONTAINER/..." without a query, which may
// have a signature, without user, port and fragment.
bool is_azure_blob_url(std::string_view url);

}  // namespace shf
