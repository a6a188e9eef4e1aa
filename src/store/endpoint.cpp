#include "store/endpoint.h"

#include "core/error.h"
#include "http/http_request.h"
#include "store/sigv4.h"

#include <algorithm>

namespace shf {

std::string checked_endpoint(std::string url, const char* store, const char* help) {
    while (url.ends_with('/')) url.pop_back();
    const bool https = url.starts_with("https://");
    if ((!https && !url.starts_with("http://")) || url.find_first_of("@?# \r\n\t") != url.npos ||
        server_of(url).ends_with("//"))
        throw Error(
            SHF_E_USAGE,
            std::string("the endpoint of ") + store + " is not http:// or https:// and a host",
            help);
    // What is usual is not sent in the header Host, which is signed.
    const std::string server = server_of(url), port = https ? ":443" : ":80";
    if (server.ends_with(port)) url.erase(server.size() - port.size(), port.size());
    return url;
}

void refuse_bucket(std::string_view bucket, const char* help) {
    if (bucket.find_first_of(":@") != bucket.npos)
        throw Error(SHF_E_USAGE, "credentials in a URL, or another port: not a bucket name",
                    std::string(help) + "; credentials come from options or the environment");
    throw Error(SHF_E_USAGE, "there is no bucket \"" + escape(bucket) + "\": not a bucket name",
                help);
}

std::string encoded_path(std::string_view key) {
    std::string result;
    for (size_t at = 0; at <= key.size();) {
        const size_t end = std::min(key.find('/', at), key.size());
        const std::string_view segment = key.substr(at, end - at);
        result += '/';
        if (segment == "." || segment == "..")
            for (size_t i = 0; i < segment.size(); ++i) result += "%2E";
        else
            result += percent_encode(segment);
        at = end + 1;
    }
    return result;
}

std::string signed_path(std::string path) {
    for (size_t at = 0; (at = path.find("%2E", at)) != path.npos; ++at) path.replace(at, 3, 1, '.');
    return path;
}

}  // namespace shf
