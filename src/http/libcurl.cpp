#include "http/libcurl.h"

#include "core/error.h"

#include <dlfcn.h>

#include <string>

namespace shf {

namespace {

// Its soname since version 7.16 of 2006.
constexpr const char* file = "libcurl.so.4";

[[noreturn]] void refuse(const std::string& cause) {
    throw Error(SHF_E_UNSUPPORTED, "libcurl cannot be loaded: " + cause,
                "install libcurl4 (Debian, Ubuntu) or libcurl (Fedora), version 7.85 or later");
}

template <typename Function>
void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    if (!function) refuse(std::string("it has no function ") + name);
}

Libcurl load() {
    void* const library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char* const why = ::dlerror();
        refuse(why ? escape(why) : file);
    }
    Libcurl curl;
    find(library, "curl_easy_cleanup", curl.easy_cleanup);
    find(library, "curl_easy_getinfo", curl.easy_getinfo);
    find(library, "curl_easy_init", curl.easy_init);
    find(library, "curl_easy_pause", curl.easy_pause);
    find(library, "curl_easy_reset", curl.easy_reset);
    find(library, "curl_easy_setopt", curl.easy_setopt);
    find(library, "curl_easy_strerror", curl.easy_strerror);
    find(library, "curl_getdate", curl.getdate);
    find(library, "curl_global_init", curl.global_init);
    find(library, "curl_free", curl.free);
    find(library, "curl_multi_add_handle", curl.multi_add_handle);
    find(library, "curl_multi_cleanup", curl.multi_cleanup);
    find(library, "curl_multi_info_read", curl.multi_info_read);
    find(library, "curl_multi_init", curl.multi_init);
    find(library, "curl_multi_perform", curl.multi_perform);
    find(library, "curl_multi_poll", curl.multi_poll);
    find(library, "curl_multi_remove_handle", curl.multi_remove_handle);
    find(library, "curl_multi_strerror", curl.multi_strerror);
    find(library, "curl_slist_append", curl.slist_append);
    find(library, "curl_slist_free_all", curl.slist_free_all);
    find(library, "curl_url", curl.url);
    find(library, "curl_url_cleanup", curl.url_cleanup);
    find(library, "curl_url_get", curl.url_get);
    find(library, "curl_url_set", curl.url_set);
    find(library, "curl_version_info", curl.version_info);
    const curl_version_info_data* const version = curl.version_info(CURLVERSION_NOW);
    if (version->version_num < 0x075500) refuse(std::string("it is version ") + version->version);
    if (const CURLcode code = curl.global_init(CURL_GLOBAL_DEFAULT); code != CURLE_OK)
        refuse(curl.easy_strerror(code));
    return curl;
}

}  // namespace

const Libcurl& libcurl() {
    static const Libcurl curl = load();
    return curl;
}

}  // namespace shf
