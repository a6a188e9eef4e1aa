// libcurl, loaded when the first URL of the network is opened: together with the libraries that it
// needs it takes 5 ms and 5 MB of every process that links it.
#pragma once

#include <curl/curl.h>

namespace shf {

// Its functions, under their names without "curl_".
struct Libcurl {
    decltype(&curl_easy_cleanup) easy_cleanup;
    decltype(&curl_easy_getinfo) easy_getinfo;
    decltype(&curl_easy_init) easy_init;
    decltype(&curl_easy_pause) easy_pause;
    decltype(&curl_easy_reset) easy_reset;
    decltype(&curl_easy_setopt) easy_setopt;
    decltype(&curl_easy_strerror) easy_strerror;
    decltype(&curl_getdate) getdate;
    decltype(&curl_global_init) global_init;
    decltype(&curl_free) free;
    decltype(&curl_multi_add_handle) multi_add_handle;
    decltype(&curl_multi_cleanup) multi_cleanup;
    decltype(&curl_multi_info_read) multi_info_read;
    decltype(&curl_multi_init) multi_init;
    decltype(&curl_multi_perform) multi_perform;
    decltype(&curl_multi_poll) multi_poll;
    decltype(&curl_multi_remove_handle) multi_remove_handle;
    decltype(&curl_multi_strerror) multi_strerror;
    decltype(&curl_slist_append) slist_append;
    decltype(&curl_slist_free_all) slist_free_all;
    decltype(&curl_url) url;
    decltype(&curl_url_cleanup) url_cleanup;
    decltype(&curl_url_get) url_get;
    decltype(&curl_url_set) url_set;
    decltype(&curl_version_info) version_info;
};

// Loads and starts it at the first call. Throws Error(UNSUPPORTED) when the system has none that
// can be used. It is never unloaded.
const Libcurl& libcurl();

}  // namespace shf
