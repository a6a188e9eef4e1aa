#include "feed/libmicrohttpd.h"

#include "core/dynamic_library.h"

#include <string>

namespace shf {

namespace {

Libmicrohttpd load_libmicrohttpd() {
    // Its soname since version 0.9.45 of 2015.
    const DynamicLibrary library("libmicrohttpd", "libmicrohttpd.so.12",
                                 "install libmicrohttpd12 (Debian), libmicrohttpd12t64 (Debian "
                                 "13, Ubuntu) or libmicrohttpd (Fedora)");
    Libmicrohttpd http;
    library.find("MHD_add_response_header", http.add_header);
    library.find("MHD_create_response_from_buffer", http.create_response);
    library.find("MHD_destroy_response", http.destroy_response);
    library.find("MHD_get_connection_info", http.connection_info);
    library.find("MHD_get_version", http.version);
    library.find("MHD_queue_response", http.queue_response);
    library.find("MHD_run_wait", http.run_wait);
    library.find("MHD_start_daemon", http.start);
    library.find("MHD_stop_daemon", http.stop);
    return http;
}

}  // namespace

const Libmicrohttpd& libmicrohttpd() {
    static const Libmicrohttpd http = load_libmicrohttpd();
    return http;
}

const char* libmicrohttpd_version() noexcept {
    try {
        static const std::string text = std::string("libmicrohttpd ") + libmicrohttpd().version();
        return text.c_str();
    } catch (...) {
        return nullptr;
    }
}

}  // namespace shf
