#include "feed/feed_http.h"

#include "core/error.h"
#include "core/threads.h"
#include "feed/libmicrohttpd.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

namespace shf {

namespace {

constexpr int http_tick_ms = 100;
// Of all clients and of one address: a flood from one leaves room for others.
constexpr unsigned most_http_connections = 128, most_of_one_address = 32;
constexpr size_t most_http_memory = size_t{16} << 10;  // of a connection, with its request
// A connection serves one request, so it need not live longer, however slowly bytes come.
constexpr unsigned http_silence_s = 5;
constexpr auto http_lifetime = std::chrono::seconds(10);

struct HttpPlace {
    std::string host, port;  // an empty host is all addresses
};

[[noreturn]] void throw_bad_http_address(const std::string& address, const std::string& why) {
    throw Error(SHF_E_USAGE, escape(address) + " is no address to answer HTTP at: " + why,
                "give HOST:PORT, or :PORT for loopback");
}

HttpPlace parse_http_address(const std::string& address) {
    const size_t colon = address.rfind(':');
    if (colon == std::string::npos) throw_bad_http_address(address, "it has no port");
    HttpPlace place{address.substr(0, colon), address.substr(colon + 1)};
    if (place.port.empty() || place.port.size() > 5 ||
        place.port.find_first_not_of("0123456789") != std::string::npos ||
        std::stoul(place.port) > 65535)
        throw_bad_http_address(address, "its port is no number from 0 to 65535");
    if (place.host.empty()) {
        place.host = "127.0.0.1";
    } else if (place.host == "*") {
        place.host.clear();
    } else if (place.host.front() == '[' && place.host.back() == ']') {
        place.host = place.host.substr(1, place.host.size() - 2);
    } else if (place.host.find(':') != std::string::npos) {
        throw_bad_http_address(address, "an address of IPv6 belongs into brackets");
    }
    return place;
}

// A socket until somebody takes it over.
class HttpListener {
  public:
    explicit HttpListener(const std::string& address) {
        const HttpPlace place = parse_http_address(address);
        addrinfo hints{}, *list = nullptr;
        hints.ai_family = place.host.empty() ? AF_INET : AF_UNSPEC;
        hints.ai_socktype = SOCK_STREAM;
        hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
        const int failed = ::getaddrinfo(place.host.empty() ? nullptr : place.host.c_str(),
                                         place.port.c_str(), &hints, &list);
        if (failed != 0) throw_bad_http_address(address, ::gai_strerror(failed));
        const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
        for (const addrinfo* entry = list; entry && fd_ < 0; entry = entry->ai_next) listen(*entry);
        if (fd_ < 0) throw Error::system("listen for HTTP at " + escape(address), error_);
    }
    ~HttpListener() {
        if (fd_ >= 0) ::close(fd_);
    }
    HttpListener(const HttpListener&) = delete;
    HttpListener& operator=(const HttpListener&) = delete;

    [[nodiscard]] int fd() const { return fd_; }
    void release() { fd_ = -1; }
    [[nodiscard]] std::string url() const {
        sockaddr_storage storage{};
        socklen_t size = sizeof storage;
        auto* const name = reinterpret_cast<sockaddr*>(&storage);
        std::array<char, NI_MAXHOST> host{};
        std::array<char, NI_MAXSERV> port{};
        if (::getsockname(fd_, name, &size) != 0)
            throw Error::system("the address of a socket", errno);
        if (::getnameinfo(name, size, host.data(), host.size(), port.data(), port.size(),
                          NI_NUMERICHOST | NI_NUMERICSERV) != 0)
            throw Error(SHF_E_IO, "the address of a socket has no text");
        const bool brackets = storage.ss_family == AF_INET6;
        return std::string("http://") + (brackets ? "[" : "") + host.data() +
               (brackets ? "]:" : ":") + port.data();
    }

  private:
    void listen(const addrinfo& entry) {
        constexpr int backlog = 128;
        fd_ = ::socket(entry.ai_family, entry.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                       entry.ai_protocol);
        const int on = 1;
        if (fd_ >= 0 && ::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
            ::bind(fd_, entry.ai_addr, entry.ai_addrlen) == 0 && ::listen(fd_, backlog) == 0)
            return;
        error_ = errno;
        if (fd_ >= 0) ::close(fd_);
        fd_ = -1;
    }

    int fd_ = -1, error_ = 0;
};

struct Reply {
    unsigned status;
    const char* type;
    std::string text;
};

constexpr const char* plain_text = "text/plain; charset=utf-8";

}  // namespace

struct FeedHttpCalls {
    static MHD_Result answer(void* self, MHD_Connection* connection, const char* url,
                             const char* method, const char* /*version*/, const char* /*upload*/,
                             size_t* upload_size, void** /*request*/) {
        *upload_size = 0;
        try {
            return static_cast<FeedHttp*>(self)->answer(connection, url, method) == MHD_YES
                       ? MHD_YES
                       : MHD_NO;
        } catch (...) {
            return MHD_NO;  // without memory
        }
    }

    static void notify(void* self, MHD_Connection* connection, void** /*context*/,
                       MHD_ConnectionNotificationCode code) {
        const auto* const info =
            libmicrohttpd().connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        if (!info) return;
        auto& connections = static_cast<FeedHttp*>(self)->connections_;
        try {
            if (code == MHD_CONNECTION_NOTIFY_STARTED)
                connections[info->connect_fd] = std::chrono::steady_clock::now();
            else
                connections.erase(info->connect_fd);
        } catch (...) {
            // Without memory: it may live until it is silent.
        }
    }
};

FeedHttp::FeedHttp(const std::string& address, Answers answers) : answers_(std::move(answers)) {
    const Libmicrohttpd& http = libmicrohttpd();
    HttpListener listener(address);
    address_ = listener.url();
    daemon_ = http.start(MHD_USE_EPOLL, 0, nullptr, nullptr, &FeedHttpCalls::answer, this,
                         MHD_OPTION_LISTEN_SOCKET, listener.fd(), MHD_OPTION_NOTIFY_CONNECTION,
                         &FeedHttpCalls::notify, this, MHD_OPTION_CONNECTION_LIMIT,
                         most_http_connections, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
                         most_of_one_address, MHD_OPTION_CONNECTION_MEMORY_LIMIT, most_http_memory,
                         MHD_OPTION_CONNECTION_TIMEOUT, http_silence_s, MHD_OPTION_END);
    if (!daemon_)
        throw Error(SHF_E_IO, "libmicrohttpd does not start", "raise the limit of open files");
    listener.release();
    try {
        start_thread(threads_, "HTTP of a feed", 1, [this] { run(); });
    } catch (...) {
        http.stop(daemon_);
        throw;
    }
}

FeedHttp::~FeedHttp() {
    stopping_ = true;
    for (std::thread& thread : threads_) thread.join();
    libmicrohttpd().stop(daemon_);
}

void FeedHttp::run() {
    while (!stopping_) {
        if (libmicrohttpd().run_wait(daemon_, http_tick_ms) != MHD_YES)
            std::this_thread::sleep_for(std::chrono::milliseconds(http_tick_ms));
        end_old_connections();
    }
}

// libmicrohttpd ends connections that are silent, and none that are slow. It reads the end of these
// at its next turn.
void FeedHttp::end_old_connections() {
    const auto latest = std::chrono::steady_clock::now() - http_lifetime;
    for (const auto& [fd, since] : connections_)
        if (since < latest) ::shutdown(fd, SHUT_RDWR);
}

int FeedHttp::answer(MHD_Connection* connection, const std::string& path,
                     const std::string& method) {
    Reply reply{MHD_HTTP_NOT_FOUND, plain_text, "/metrics and /healthz are here\n"};
    if (method != MHD_HTTP_METHOD_GET && method != MHD_HTTP_METHOD_HEAD)
        reply = {MHD_HTTP_METHOD_NOT_ALLOWED, plain_text, "only GET\n"};
    else if (path == "/metrics")
        reply = {MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", answers_.metrics()};
    else if (path == "/healthz" && answers_.healthy())
        reply = {MHD_HTTP_OK, plain_text, "ok\n"};
    else if (path == "/healthz")
        reply = {MHD_HTTP_SERVICE_UNAVAILABLE, plain_text, "does not serve\n"};

    const Libmicrohttpd& http = libmicrohttpd();
    const std::unique_ptr<MHD_Response, decltype(http.destroy_response)> response(
        http.create_response(reply.text.size(), reply.text.data(), MHD_RESPMEM_MUST_COPY),
        http.destroy_response);
    if (!response) return MHD_NO;
    const auto add = [&](const char* name, const char* value) {
        return http.add_header(response.get(), name, value) == MHD_YES;
    };
    const bool whole =
        add(MHD_HTTP_HEADER_CONTENT_TYPE, reply.type) &&
        add(MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") &&
        add(MHD_HTTP_HEADER_CONNECTION, "close") &&
        (reply.status != MHD_HTTP_METHOD_NOT_ALLOWED || add(MHD_HTTP_HEADER_ALLOW, "GET, HEAD"));
    return whole ? http.queue_response(connection, reply.status, response.get()) : MHD_NO;
}

}  // namespace shf
