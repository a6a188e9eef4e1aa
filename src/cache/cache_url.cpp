#include "cache/cache_url.h"

#include "cache/cache_folder.h"
#include "core/lowered.h"
#include "url/redact.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace shf {

namespace {

// Parameters that signed URLs have, of S3, GCS, Azure and CloudFront: others every time.
bool is_signature(std::string_view parameter) {
    static constexpr std::array<std::string_view, 30> names = {"signature",
                                                               "expires",
                                                               "awsaccesskeyid",
                                                               "googleaccessid",
                                                               "policy",
                                                               "key-pair-id",
                                                               "hash-algorithm",
                                                               "sig",
                                                               "se",
                                                               "st",
                                                               "sp",
                                                               "sv",
                                                               "sr",
                                                               "spr",
                                                               "sip",
                                                               "skoid",
                                                               "sktid",
                                                               "skt",
                                                               "ske",
                                                               "sks",
                                                               "skv",
                                                               "saoid",
                                                               "suoid",
                                                               "scid",
                                                               "ss",
                                                               "srt",
                                                               "rscd",
                                                               "rsct",
                                                               "token",
                                                               "access_token"};
    const std::string name = lowered(parameter.substr(0, parameter.find('=')));
    return name.starts_with("x-amz-") || name.starts_with("x-goog-") ||
           std::find(names.begin(), names.end(), name) != names.end();
}

// Without a signature those are parameters like others: "sr=16000".
bool is_signed(std::string_view query) {
    static constexpr std::array<std::string_view, 6> names = {
        "signature", "sig", "x-amz-signature", "x-goog-signature", "token", "access_token"};
    while (!query.empty()) {
        const size_t end = std::min(query.find('&'), query.size());
        const std::string_view parameter = query.substr(0, end);
        query.remove_prefix(std::min(end + 1, query.size()));
        const std::string name = lowered(parameter.substr(0, parameter.find('=')));
        if (std::find(names.begin(), names.end(), name) != names.end()) return true;
    }
    return false;
}

}  // namespace

std::string cache_url(const std::string& url) {
    std::string text = redact(url);
    const size_t mark = text.find("://");
    if (mark != text.npos) {
        const size_t end = std::min(text.find('/', mark + 3), text.size());
        text = lowered(text.substr(0, end)) + text.substr(end);
    }
    // Names in stores have no queries and fragments: all of them is the name of the object.
    static constexpr std::array<std::string_view, 7> stores = {
        "s3://", "gs://", "az://", "abfs://", "abfss://", "hf://", "ais://"};
    if (std::any_of(stores.begin(), stores.end(),
                    [&](std::string_view store) { return text.starts_with(store); })) {
        const size_t cut = url.find_first_of("?#");
        return cut == url.npos ? text : text + "?" + url_folder(url.substr(cut));
    }
    const std::string whole = url.substr(0, url.find('#'));
    const size_t question = whole.find('?');
    if (question == whole.npos) return text;
    const bool is_secret = is_signed(whole.substr(question + 1));
    std::vector<std::string_view> kept;
    for (std::string_view rest = std::string_view(whole).substr(question + 1); !rest.empty();) {
        const size_t end = std::min(rest.find('&'), rest.size());
        if (end > 0 && !(is_secret && is_signature(rest.substr(0, end))))
            kept.push_back(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (kept.empty()) return text;
    std::string query;
    for (const std::string_view parameter : kept) query += std::string(parameter) + "&";
    return text + "?" + url_folder(query);
}

}  // namespace shf
