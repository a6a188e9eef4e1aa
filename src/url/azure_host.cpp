#include "url/azure_host.h"

#include "core/lowered.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace shf {

namespace {

constexpr std::array<std::string_view, 4> clouds = {"core.windows.net", "core.usgovcloudapi.net",
                                                    "core.chinacloudapi.cn", "storage.azure.net"};

bool all_of(std::string_view text, int (*is)(int)) {
    return std::all_of(text.begin(), text.end(),
                       [is](char c) { return is(static_cast<unsigned char>(c)) != 0; });
}

// Letters, digits, and "-" before "secondary".
bool is_account(std::string_view text) {
    constexpr std::string_view other_region = "-secondary";
    if (text.ends_with(other_region)) text.remove_suffix(other_region.size());
    return text.size() >= 3 && text.size() <= 24 && all_of(text, std::isalnum);
}

// "z01": a DNS zone.
bool is_zone(std::string_view text) {
    return text.size() > 1 && text[0] == 'z' && all_of(text.substr(1), std::isdigit);
}

}  // namespace

std::optional<AzureHost> azure_host(std::string_view host) {
    const std::string lower = lowered(host);
    const std::string_view text = lower;
    for (const std::string_view service : {std::string_view(".blob."), std::string_view(".dfs.")}) {
        const size_t at = text.find(service);
        if (at == text.npos) continue;
        const std::string_view cloud = text.substr(at + service.size());
        const size_t dot = std::min(text.find('.'), at);
        const std::string_view account = text.substr(0, dot), zone = text.substr(dot, at - dot);
        if (std::find(clouds.begin(), clouds.end(), cloud) == clouds.end() ||
            !is_account(account) || (!zone.empty() && !is_zone(zone.substr(1))))
            continue;
        return AzureHost{
            .account = std::string(account),
            .blob_host = std::string(text.substr(0, at)) + ".blob." + std::string(cloud)};
    }
    return std::nullopt;
}

bool is_azure_blob_url(std::string_view url) {
    constexpr std::string_view start = "https://";
    if (!url.starts_with(start) || url.find_first_of("?#") != url.npos) return false;
    url.remove_prefix(start.size());
    const size_t slash = url.find('/');
    if (slash == url.npos) return false;
    const auto host = azure_host(url.substr(0, slash));
    const size_t end = url.find('/', slash + 1);
    return host && host->blob_host.size() == slash && url.find(".blob.") < slash &&
           end != url.npos && end > slash + 1;
}

}  // namespace shf
