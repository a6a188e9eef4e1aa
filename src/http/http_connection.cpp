#include "http/http_connection.h"

#include "core/cancel.h"
#include "core/fork.h"
#include "core/opening.h"
#include "core/options.h"
#include "core/per_process.h"
#include "http/http_address.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <new>

namespace shf {

namespace {

// So many are kept open for another transfer.
constexpr size_t most_idle = 64;
constexpr long most_redirects = 10;
constexpr long buffer_size = 512 * 1024;

struct Idle {
    std::mutex mutex;
    std::multimap<std::string, std::unique_ptr<HttpConnection>> connections;
};
constinit PerProcess<Idle> idle_connections;

template <typename Value>
void set(CURL* easy, CURLoption option, Value value) {
    const CURLcode code = libcurl().easy_setopt(easy, option, value);
    if (code == CURLE_OUT_OF_MEMORY) throw std::bad_alloc();
    if (code != CURLE_OK)
        throw Error(SHF_E_UNSUPPORTED,
                    std::string("libcurl refuses a setting: ") + libcurl().easy_strerror(code));
}

}  // namespace

std::unique_ptr<HttpConnection> HttpConnection::take(const std::string& server) {
    std::unique_ptr<HttpConnection> found;
    {
        Idle& idle = idle_connections.get();
        const std::lock_guard lock(idle.mutex);
        const auto at = idle.connections.find(server);
        if (at != idle.connections.end()) {
            found = std::move(at->second);
            idle.connections.erase(at);
        }
    }
    if (found) return found;
    return std::unique_ptr<HttpConnection>(new HttpConnection(server));
}

bool HttpConnection::is_ours() const {
    return generation_ == fork_generation();
}

void HttpConnection::give_back(std::unique_ptr<HttpConnection> connection) noexcept {
    if (!connection) return;
    // To close the connection of a parent process would tell the server.
    if (!connection->is_ours()) return (void)connection.release();
    if (!connection->over_ || connection->result_ != CURLE_OK) return;
    try {
        Idle& idle = idle_connections.get();
        const std::lock_guard lock(idle.mutex);
        if (idle.connections.size() < most_idle)
            idle.connections.emplace(connection->server_, std::move(connection));
    } catch (const std::bad_alloc&) {  // it is closed
    }
}

HttpConnection::HttpConnection(std::string server)
    : server_(std::move(server)),
      generation_(fork_generation()),
      multi_(libcurl().multi_init()),
      easy_(libcurl().easy_init()) {
    if (!multi_ || !easy_) throw std::bad_alloc();
}

HttpConnection::~HttpConnection() {
    if (added_) libcurl().multi_remove_handle(multi_.get(), easy_.get());
}

void HttpConnection::start(const HttpRequest& request, const Options& options) {
    if (added_) libcurl().multi_remove_handle(multi_.get(), easy_.get());
    added_ = has_headers_ = over_ = paused_ = out_of_memory_ = refused_redirect_ = false;
    first_was_public_.reset();
    result_ = CURLE_OK;
    answer_ = {};
    held_.clear();
    held_begin_ = 0;
    error_[0] = '\0';
    CURL* const easy = easy_.get();
    libcurl().easy_reset(easy);
    set(easy, CURLOPT_URL, request.url.c_str());
    set(easy, CURLOPT_NOSIGNAL, 1L);
    set(easy, CURLOPT_ERRORBUFFER, error_);
    set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    set(easy, CURLOPT_REDIR_PROTOCOLS_STR,
        request.url.starts_with("https:") ? "https" : "http,https");
    set(easy, CURLOPT_FOLLOWLOCATION, 1L);
    set(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    set(easy, CURLOPT_MAXREDIRS, most_redirects);
    set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    set(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    set(easy, CURLOPT_BUFFERSIZE, buffer_size);
    set(easy, CURLOPT_CONNECTTIMEOUT_MS, 10'000L);
    set(easy, CURLOPT_LOW_SPEED_LIMIT, 1024L);
    set(easy, CURLOPT_LOW_SPEED_TIME, 30L);
    set(easy, CURLOPT_MAXAGE_CONN, 600L);
    set(easy, CURLOPT_MAXLIFETIME_CONN, 3600L);
    set(easy, CURLOPT_USERAGENT, "shardfeed/" SHF_VERSION_STRING);
    set(easy, CURLOPT_HEADERFUNCTION, &HttpConnection::on_header);
    set(easy, CURLOPT_HEADERDATA, this);
    set(easy, CURLOPT_WRITEFUNCTION, &HttpConnection::on_body);
    set(easy, CURLOPT_WRITEDATA, this);
    set(easy, CURLOPT_PREREQFUNCTION, &HttpConnection::on_request);
    set(easy, CURLOPT_PREREQDATA, this);
    if (!options.ca_file.empty()) set(easy, CURLOPT_CAINFO, options.ca_file.c_str());
    std::string range;
    if (!request.whole) {
        range = std::to_string(request.first) + '-';
        if (request.last) range += std::to_string(*request.last);
        set(easy, CURLOPT_RANGE, range.c_str());
    }
    headers_.reset();
    if (!request.if_match.empty()) {
        headers_.reset(libcurl().slist_append(nullptr, ("If-Match: " + request.if_match).c_str()));
        if (!headers_) throw std::bad_alloc();
        set(easy, CURLOPT_HTTPHEADER, headers_.get());
    }
    if (libcurl().multi_add_handle(multi_.get(), easy) != CURLM_OK) throw std::bad_alloc();
    added_ = true;
}

size_t HttpConnection::on_header(char* data, size_t size, size_t count, void* self) {
    auto& connection = *static_cast<HttpConnection*>(self);
    const std::string_view line(data, size * count);
    try {
        if (line.starts_with("HTTP/")) {  // another answer: after a redirect, or 100
            connection.answer_ = {};
        } else if (line == "\r\n" || line == "\n") {
            long status = 0;
            libcurl().easy_getinfo(connection.easy_.get(), CURLINFO_RESPONSE_CODE, &status);
            connection.answer_.status = static_cast<int>(status);
            connection.has_headers_ = status >= 200 && (status < 300 || status >= 400);
        } else {
            connection.answer_.add_header(line);
        }
    } catch (const std::bad_alloc&) {
        connection.out_of_memory_ = true;
        return 0;
    }
    return size * count;
}

size_t HttpConnection::on_body(char* data, size_t size, size_t count, void* self) {
    auto& connection = *static_cast<HttpConnection*>(self);
    const size_t bytes = size * count;
    // Bodies of redirects that are followed do not come here.
    connection.has_headers_ = true;
    const bool wanted = connection.filled_ < connection.target_.size();
    if (!wanted) {
        connection.paused_ = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    const size_t fits = std::min(bytes, connection.target_.size() - connection.filled_);
    std::copy_n(data, fits,
                connection.target_.begin() + static_cast<ptrdiff_t>(connection.filled_));
    connection.filled_ += fits;
    try {
        connection.held_.insert(connection.held_.end(), data + fits, data + bytes);
    } catch (const std::bad_alloc&) {
        connection.out_of_memory_ = true;
        return 0;
    }
    return bytes;
}

// Before every request, redirected ones too (H7): what is public must not lead to addresses that
// only this machine or its network can reach.
int HttpConnection::on_request(void* self, char* to, char* /*from*/, int /*to_port*/,
                               int /*from_port*/) {
    auto& connection = *static_cast<HttpConnection*>(self);
    const bool is_public = is_public_address(to);
    if (!connection.first_was_public_) {
        connection.first_was_public_ = is_public;
    } else if (*connection.first_was_public_ && !is_public) {
        connection.refused_redirect_ = true;
        return CURL_PREREQFUNC_ABORT;
    }
    return CURL_PREREQFUNC_OK;
}

void HttpConnection::drive() {
    int running = 0;
    const CURLMcode code = libcurl().multi_perform(multi_.get(), &running);
    if (code == CURLM_OUT_OF_MEMORY) throw std::bad_alloc();
    if (code != CURLM_OK)
        throw Error(SHF_E_INTERNAL, std::string("libcurl: ") + libcurl().multi_strerror(code));
    int left = 0;
    while (const CURLMsg* message = libcurl().multi_info_read(multi_.get(), &left)) {
        if (message->msg != CURLMSG_DONE) continue;
        result_ = message->data.result;
        over_ = true;
        libcurl().multi_remove_handle(multi_.get(), easy_.get());
        added_ = false;
        break;
    }
}

void HttpConnection::move_on(const Cancel& cancel) {
    cancel.check();
    const bool headers = has_headers_;
    drive();
    if (over_ || paused_ || has_headers_ != headers) return;
    const int fd = cancel.fd();
    curl_waitfd extra = {.fd = fd, .events = CURL_WAIT_POLLIN, .revents = 0};
    // An opening is asked every few milliseconds; else the descriptor wakes.
    const int time = fd < 0 ? 5 : 1000;
    libcurl().multi_poll(multi_.get(), fd < 0 ? nullptr : &extra, fd < 0 ? 0 : 1, time, nullptr);
    cancel.check();
}

size_t HttpConnection::take_body(std::span<uint8_t> out) {
    if (has_held()) {
        const size_t count = std::min(out.size(), held_.size() - held_begin_);
        std::copy_n(held_.begin() + static_cast<ptrdiff_t>(held_begin_), count, out.begin());
        held_begin_ += count;
        if (!has_held()) {
            held_.clear();
            held_begin_ = 0;
        }
        return count;
    }
    if (over_) return 0;
    target_ = out;
    filled_ = 0;
    struct Forget {
        HttpConnection& connection;
        ~Forget() { connection.target_ = {}; }
    };
    const Forget forget{*this};
    if (paused_) {
        paused_ = false;
        if (const CURLcode code = libcurl().easy_pause(easy_.get(), CURLPAUSE_CONT);
            code != CURLE_OK) {
            result_ = code;
            over_ = true;
        }
    }
    if (filled_ == 0 && !over_) drive();
    return filled_;
}

void HttpConnection::check() const {
    if (result_ != CURLE_OK) throw error_of(result_);
}

Error HttpConnection::error_of(CURLcode code) const {
    if (out_of_memory_ || code == CURLE_OUT_OF_MEMORY) throw std::bad_alloc();
    if (refused_redirect_)
        return Error(SHF_E_NET_PERMANENT,
                     "the server redirects to an address of this machine or a private network",
                     "give the URL that it redirects to, if you trust it");
    const std::string said = error_[0] != '\0' ? error_ : libcurl().easy_strerror(code);
    switch (code) {
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_CACERT_BADFILE:
        case CURLE_SSL_CERTPROBLEM:
        case CURLE_SSL_CIPHER:
        case CURLE_SSL_ISSUER_ERROR:
            return Error(SHF_E_TLS, said, "for a certificate of your own give ca_file=PATH");
        case CURLE_URL_MALFORMAT:
            return Error(SHF_E_USAGE, "not a URL: " + said, "write special characters as %XX");
        case CURLE_TOO_MANY_REDIRECTS:
            return Error(SHF_E_NET_PERMANENT, "more than 10 redirects", "give the last URL itself");
        case CURLE_UNSUPPORTED_PROTOCOL:
            return Error(SHF_E_NET_PERMANENT, "the server redirects to what is not safe: " + said,
                         "give the last URL itself, if you trust it");
        case CURLE_LOGIN_DENIED: return Error(SHF_E_AUTH, said, "look at the credentials");
        default: return Error(SHF_E_NET_TRANSIENT, said, "look at the network, or try again later");
    }
}

}  // namespace shf
