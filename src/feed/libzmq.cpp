#include "feed/libzmq.h"

#include "core/dynamic_library.h"

#include <string>

namespace shf {

namespace {

Libzmq load_libzmq() {
    // Its soname since version 4.1 of 2014.
    const DynamicLibrary library("libzmq", "libzmq.so.5",
                                 "install libzmq5 (Debian, Ubuntu) or zeromq (Fedora)");
    Libzmq zmq;
    library.find("zmq_bind", zmq.bind);
    library.find("zmq_close", zmq.close);
    library.find("zmq_connect", zmq.connect);
    library.find("zmq_ctx_new", zmq.ctx_new);
    library.find("zmq_ctx_set", zmq.ctx_set);
    library.find("zmq_ctx_term", zmq.ctx_term);
    library.find("zmq_curve_keypair", zmq.curve_keypair);
    library.find("zmq_curve_public", zmq.curve_public);
    library.find("zmq_errno", zmq.error_number);
    library.find("zmq_getsockopt", zmq.getsockopt);
    library.find("zmq_msg_close", zmq.msg_close);
    library.find("zmq_msg_data", zmq.msg_data);
    library.find("zmq_msg_init", zmq.msg_init);
    library.find("zmq_msg_init_data", zmq.msg_init_data);
    library.find("zmq_msg_init_size", zmq.msg_init_size);
    library.find("zmq_msg_more", zmq.msg_more);
    library.find("zmq_msg_recv", zmq.msg_recv);
    library.find("zmq_msg_send", zmq.msg_send);
    library.find("zmq_msg_size", zmq.msg_size);
    library.find("zmq_poll", zmq.poll);
    library.find("zmq_setsockopt", zmq.setsockopt);
    library.find("zmq_socket", zmq.socket);
    library.find("zmq_socket_monitor", zmq.socket_monitor);
    library.find("zmq_strerror", zmq.text_of_error);
    library.find("zmq_version", zmq.version);
    return zmq;
}

}  // namespace

const Libzmq& libzmq() {
    static const Libzmq zmq = load_libzmq();
    return zmq;
}

const char* libzmq_version() noexcept {
    try {
        static const std::string text = [] {
            int major = 0, minor = 0, patch = 0;
            libzmq().version(&major, &minor, &patch);
            return "libzmq " + std::to_string(major) + '.' + std::to_string(minor) + '.' +
                   std::to_string(patch);
        }();
        return text.c_str();
    } catch (...) {
        return nullptr;
    }
}

}  // namespace shf
