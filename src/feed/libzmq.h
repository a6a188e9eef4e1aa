// The functions of libzmq, which is loaded when something is fed: programs that read their own
// shards do not pay for it.
#pragma once

#include <zmq.h>

namespace shf {

struct Libzmq {
    decltype(&::zmq_bind) bind;
    decltype(&::zmq_close) close;
    decltype(&::zmq_connect) connect;
    decltype(&::zmq_ctx_new) ctx_new;
    decltype(&::zmq_ctx_set) ctx_set;
    decltype(&::zmq_ctx_term) ctx_term;
    decltype(&::zmq_curve_keypair) curve_keypair;
    decltype(&::zmq_curve_public) curve_public;
    decltype(&::zmq_errno) error_number;
    decltype(&::zmq_getsockopt) getsockopt;
    decltype(&::zmq_msg_close) msg_close;
    decltype(&::zmq_msg_data) msg_data;
    decltype(&::zmq_msg_init) msg_init;
    decltype(&::zmq_msg_init_data) msg_init_data;
    decltype(&::zmq_msg_init_size) msg_init_size;
    decltype(&::zmq_msg_more) msg_more;
    decltype(&::zmq_msg_recv) msg_recv;
    decltype(&::zmq_msg_send) msg_send;
    decltype(&::zmq_msg_size) msg_size;
    decltype(&::zmq_poll) poll;
    decltype(&::zmq_setsockopt) setsockopt;
    decltype(&::zmq_socket) socket;
    decltype(&::zmq_socket_monitor) socket_monitor;
    decltype(&::zmq_strerror) text_of_error;
    decltype(&::zmq_version) version;
};

// Loads it at the first call. Throws Error(UNSUPPORTED). Any thread.
const Libzmq& libzmq();
// "libzmq 4.3.4"; NULL when this system has none. Static.
const char* libzmq_version() noexcept;

}  // namespace shf
