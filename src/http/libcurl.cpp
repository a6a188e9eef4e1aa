#include "http/libcurl.h"

#include "core/dynamic_library.h"
#include "core/fork.h"

#include <atomic>
#include <string>

namespace shf {

namespace {

Libcurl load_libcurl() {
    // Its soname since version 7.16 of 2006.
    const DynamicLibrary library(
        "libcurl", "libcurl.so.4",
        "install libcurl4 (Debian, Ubuntu) or libcurl (Fedora), version 7.85 or later");
    Libcurl curl;
    library.find("curl_easy_cleanup", curl.easy_cleanup);
    library.find("curl_easy_getinfo", curl.easy_getinfo);
    library.find("curl_easy_init", curl.easy_init);
    library.find("curl_easy_pause", curl.easy_pause);
    library.find("curl_easy_reset", curl.easy_reset);
    library.find("curl_easy_setopt", curl.easy_setopt);
    library.find("curl_easy_strerror", curl.easy_strerror);
    library.find("curl_getdate", curl.getdate);
    library.find("curl_global_init", curl.global_init);
    library.find("curl_free", curl.free);
    library.find("curl_multi_add_handle", curl.multi_add_handle);
    library.find("curl_multi_cleanup", curl.multi_cleanup);
    library.find("curl_multi_info_read", curl.multi_info_read);
    library.find("curl_multi_init", curl.multi_init);
    library.find("curl_multi_perform", curl.multi_perform);
    library.find("curl_multi_poll", curl.multi_poll);
    library.find("curl_multi_remove_handle", curl.multi_remove_handle);
    library.find("curl_multi_strerror", curl.multi_strerror);
    library.find("curl_slist_append", curl.slist_append);
    library.find("curl_slist_free_all", curl.slist_free_all);
    library.find("curl_url", curl.url);
    library.find("curl_url_cleanup", curl.url_cleanup);
    library.find("curl_url_get", curl.url_get);
    library.find("curl_url_set", curl.url_set);
    library.find("curl_version_info", curl.version_info);
    const curl_version_info_data* const version = curl.version_info(CURLVERSION_NOW);
    if (version->version_num < 0x075500)
        library.refuse(std::string("it is version ") + version->version);
    if (const CURLcode code = curl.global_init(CURL_GLOBAL_DEFAULT); code != CURLE_OK)
        library.refuse(curl.easy_strerror(code));
    // OpenSSL's own end of a thread, if that is what it uses: it takes locks.
    if (void (*const stop)() = library.find_if_there<void (*)()>("OPENSSL_thread_stop"))
        stop_at_thread_end(stop);
    return curl;
}

}  // namespace

const Libcurl& libcurl() {
    static std::atomic<const Libcurl*> loaded{nullptr};
    if (const Libcurl* const curl = loaded.load(std::memory_order_acquire)) return *curl;
    // A child that is forked meanwhile would wait endlessly: it lacks the thread that loads it.
    const ForkHold hold;
    static const Libcurl curl = load_libcurl();
    loaded.store(&curl, std::memory_order_release);
    return curl;
}

}  // namespace shf
