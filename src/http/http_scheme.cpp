#include "http/http_scheme.h"

#include "http/http_source.h"
#include "http/libcurl.h"
#include "io/sources.h"

#include <array>
#include <memory>
#include <string>

namespace shf {

namespace {

std::unique_ptr<Source> open(const std::string& url, const SourceContext& context) {
    return http_source(plain_http(), url, context);
}

Identity identity_of(const std::string& url, const SourceContext& context) {
    return open(url, context)->identity();
}

constexpr std::array schemes = {
    Scheme{"http", open, identity_of, nullptr},
    Scheme{"https", open, identity_of, nullptr},
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
