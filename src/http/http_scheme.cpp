#include "http/http_scheme.h"

#include "http/http_source.h"
#include "http/libcurl.h"
#include "io/sources.h"

#include <array>
#include <memory>
#include <string>

namespace shf {

namespace {

Identity identity_of(const std::string& url, const Options& options) {
    const Cancel never;
    return http_source(url, options, never)->identity();
}

constexpr std::array schemes = {
    Scheme{"http", http_source, identity_of},
    Scheme{"https", http_source, identity_of},
};

}  // namespace

void add_http_schemes() {
    static const bool added = [] {
        for (const Scheme& scheme : schemes) Sources::add(scheme);
        return true;
    }();
    (void)added;
}

const char* http_library() {
    static const std::string name =
        std::string("libcurl ") + libcurl().version_info(CURLVERSION_NOW)->version;
    return name.c_str();
}

}  // namespace shf
