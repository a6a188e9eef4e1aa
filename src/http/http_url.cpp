#include "http/http_url.h"

#include "core/error.h"
#include "http/libcurl.h"

#include <memory>
#include <new>

namespace shf {

namespace {

struct UrlCleanup {
    void operator()(CURLU* url) const { libcurl().url_cleanup(url); }
};
using Url = std::unique_ptr<CURLU, UrlCleanup>;

Url new_url() {
    Url url(libcurl().url());
    if (!url) throw std::bad_alloc();
    return url;
}

CURLUcode set(const Url& url, CURLUPart part, const char* text) {
    const CURLUcode code = libcurl().url_set(url.get(), part, text, 0);
    if (code == CURLUE_OUT_OF_MEMORY) throw std::bad_alloc();
    return code;
}

// Empty: there is none.
std::string get(const Url& url, CURLUPart part, unsigned flags = 0) {
    struct Free {
        void operator()(char* text) const { libcurl().free(text); }
    };
    char* text = nullptr;
    const CURLUcode code = libcurl().url_get(url.get(), part, &text, flags);
    const std::unique_ptr<char, Free> owned(text);
    if (code == CURLUE_OUT_OF_MEMORY) throw std::bad_alloc();
    return code == CURLUE_OK && text ? text : "";
}

}  // namespace

UserInfo take_user(std::string& text) {
    const Url url = new_url();
    if (set(url, CURLUPART_URL, text.c_str()) != CURLUE_OK)
        throw Error(SHF_E_USAGE, "this is not a URL", "write special characters as %XX");
    UserInfo info{.user = get(url, CURLUPART_USER, CURLU_URLDECODE),
                  .password = get(url, CURLUPART_PASSWORD, CURLU_URLDECODE)};
    if (!info.user.empty() || !info.password.empty()) {
        set(url, CURLUPART_USER, nullptr);
        set(url, CURLUPART_PASSWORD, nullptr);
    }
    text = get(url, CURLUPART_URL);
    return info;
}

std::string resolve_url(const std::string& base, const std::string& reference) {
    const Url url = new_url();
    if (set(url, CURLUPART_URL, base.c_str()) != CURLUE_OK ||
        set(url, CURLUPART_URL, reference.c_str()) != CURLUE_OK)
        throw Error(SHF_E_NET_PERMANENT, "the server redirects to what is not safe or no URL",
                    "give the last URL itself, if you trust it");
    return get(url, CURLUPART_URL);
}

bool same_origin(const std::string& one, const std::string& other) {
    const Url a = new_url(), b = new_url();
    if (set(a, CURLUPART_URL, one.c_str()) != CURLUE_OK ||
        set(b, CURLUPART_URL, other.c_str()) != CURLUE_OK)
        return false;
    const auto same = [&](CURLUPart part) {
        return get(a, part, CURLU_DEFAULT_PORT) == get(b, part, CURLU_DEFAULT_PORT);
    };
    return same(CURLUPART_SCHEME) && same(CURLUPART_HOST) && same(CURLUPART_PORT);
}

}  // namespace shf
