// The functions of libmicrohttpd, which is loaded when a feed answers HTTP.
#pragma once

#include <microhttpd.h>

namespace shf {

struct Libmicrohttpd {
    decltype(&::MHD_add_response_header) add_header;
    decltype(&::MHD_create_response_from_buffer) create_response;
    decltype(&::MHD_destroy_response) destroy_response;
    decltype(&::MHD_get_connection_info) connection_info;
    decltype(&::MHD_queue_response) queue_response;
    decltype(&::MHD_run_wait) run_wait;
    decltype(&::MHD_start_daemon) start;
    decltype(&::MHD_stop_daemon) stop;
    decltype(&::MHD_get_version) version;
};

// Loads it at the first call. Throws Error(UNSUPPORTED). Any thread.
const Libmicrohttpd& libmicrohttpd();

// "libmicrohttpd 0.9.75"; NULL when this system has none. Static. Any thread.
const char* libmicrohttpd_version() noexcept;

}  // namespace shf
