#include "http/http_transfer.h"

#include "core/cancel.h"
#include "core/fork.h"
#include "core/lowered.h"
#include "core/options.h"
#include "http/http_address.h"

#include <algorithm>
#include <array>
#include <new>
#include <string_view>
#include <utility>

namespace shf {

namespace {

constexpr long buffer_size = 512 * 1024;

template <typename Value>
void set(CURL* easy, CURLoption option, Value value) {
    const CURLcode code = libcurl().easy_setopt(easy, option, value);
    if (code == CURLE_OUT_OF_MEMORY) throw std::bad_alloc();
    if (code != CURLE_OK)
        throw Error(SHF_E_UNSUPPORTED, "libcurl refuses setting " + std::to_string(option) + ": " +
                                           libcurl().easy_strerror(code));
}

void set_text(CURL* easy, CURLoption option, const std::string& value) {
    if (!value.empty()) set(easy, option, value.c_str());
}

}  // namespace

std::string header_name(std::string_view line) {
    return lowered(line.substr(0, line.find(':')));
}

std::string sent_header(const HttpRequest& request, std::string_view name) {
    for (const std::string& line : request.headers)
        if (header_name(line) == name) return line.substr(std::min(name.size() + 2, line.size()));
    return {};
}

std::string server_of(const std::string& url) {
    const size_t host = url.find("://");
    const size_t path = host == url.npos ? url.npos : url.find_first_of("/?#", host + 3);
    return url.substr(0, path);
}

HttpTransfer::HttpTransfer(HttpClient& client, const HttpRequest& request,
                           const SourceContext& context, size_t ahead)
    : client_(client),
      context_(context),
      ahead_(ahead),
      body_(request.body),
      payload_(request.upload.empty() ? std::string_view(body_) : request.payload()),
      public_only_(request.public_only) {
    const ForkHold hold;
    easy_ = client_.add(*this);
    try {
        set_up(request);
        if (libcurl().multi_add_handle(client_.multi_.get(), easy_) != CURLM_OK)
            throw std::bad_alloc();
    } catch (...) {
        client_.remove(easy_, false);
        throw;
    }
    added_ = true;
    ++context_.use.requests;
}

HttpTransfer::~HttpTransfer() {
    // Its connection is that of the parent process: nothing must be said on it.
    if (client_.is_ours()) client_.remove(easy_, added_);
    if (ahead_ > 0 && held_.capacity() >= ahead_) client_.keep(std::move(held_));
}

void HttpTransfer::set_up(const HttpRequest& request) {
    CURL* const easy = easy_;
    const Options& options = context_.options;
    set(easy, CURLOPT_URL, request.url.c_str());
    // Keys of stores may have segments of dots; take_user() resolved those of plain URLs.
    set(easy, CURLOPT_PATH_AS_IS, 1L);
    set(easy, CURLOPT_NOSIGNAL, 1L);
    set(easy, CURLOPT_ERRORBUFFER, error_);
    set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    set(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    if (options.http2) {
        set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
        set(easy, CURLOPT_PIPEWAIT, 1L);
    } else {
        set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    }
    set(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    // A handle that was used for HTTP/2 may refuse another size; it has this one already.
    (void)libcurl().easy_setopt(easy, CURLOPT_BUFFERSIZE, buffer_size);
    set(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.connect_limit.count()));
    set(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(request.limit.count()));
    set(easy, CURLOPT_LOW_SPEED_LIMIT, 1024L);
    set(easy, CURLOPT_LOW_SPEED_TIME, 30L);
    set(easy, CURLOPT_MAXAGE_CONN, 600L);
    set(easy, CURLOPT_MAXLIFETIME_CONN, 3600L);
    set(easy, CURLOPT_USERAGENT, "shardfeed/" SHF_VERSION_STRING);
    set(easy, CURLOPT_HEADERFUNCTION, &HttpTransfer::on_header);
    set(easy, CURLOPT_HEADERDATA, this);
    set(easy, CURLOPT_WRITEFUNCTION, &HttpTransfer::on_body);
    set(easy, CURLOPT_WRITEDATA, this);
    set(easy, CURLOPT_PREREQFUNCTION, &HttpTransfer::on_request);
    set(easy, CURLOPT_PREREQDATA, this);
    set_text(easy, CURLOPT_CAINFO, options.ca_file);
    set_text(easy, CURLOPT_USERNAME, request.user);
    set_text(easy, CURLOPT_PASSWORD, request.password);
    if (request.near || options.proxy == "none")
        set(easy, CURLOPT_PROXY, "");
    else
        set_text(easy, CURLOPT_PROXY, options.proxy);
    if (request.certificate) {
        set_text(easy, CURLOPT_SSLCERT, options.client_cert);
        set_text(easy, CURLOPT_SSLKEY, options.client_key);
    }
    if (request.method == "HEAD") {
        set(easy, CURLOPT_NOBODY, 1L);
    } else if (request.method != "GET" || !payload_.empty()) {
        set(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
        set(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(payload_.size()));
        set(easy, CURLOPT_POSTFIELDS, payload_.empty() ? "" : payload_.data());
        // A handle that was used for HTTP/2 may refuse another size.
        if (!request.upload.empty())
            (void)libcurl().easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, buffer_size);
    }
    const auto add = [&](const std::string& line) {
        curl_slist* const longer = libcurl().slist_append(headers_.get(), line.c_str());
        if (!longer) throw std::bad_alloc();
        (void)headers_.release();
        headers_.reset(longer);
    };
    for (const std::string& line : request.headers) {
        // It would become another header (H14). The line is not shown: it may have a secret.
        if (std::any_of(line.begin(), line.end(), [](char c) {
                return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
            }))
            throw Error(SHF_E_USAGE,
                        "the value of the header " + header_name(line) +
                            " has the end of a line or a control character in it",
                        "look at the credentials, in options, environment and files");
        add(line);
    }
    // Not by CURLOPT_RANGE: where libcurl gets no memory for that header, it leaves it out.
    if (!request.whole)
        add("Range: bytes=" + std::to_string(request.first) + '-' +
            (request.last ? std::to_string(*request.last) : ""));
    if (!request.if_match.empty()) add("If-Match: " + request.if_match);
    if (!payload_.empty()) add("Expect:");  // one round trip less
    if (headers_) set(easy, CURLOPT_HTTPHEADER, headers_.get());
}

const HttpAnswer& HttpTransfer::answer() {
    for (;;) {
        if (has_headers_) return answer_;
        if (over_) break;
        client_.drive();
        if (!has_headers_ && !over_) client_.wait(context_.cancel);
    }
    check();
    // For libcurl an answer is over, and good, when its connection ends inside its headers.
    throw answer_cut_off();
}

size_t HttpTransfer::read(std::span<uint8_t> out) {
    if (out.empty()) return 0;
    for (;;) {
        if (const size_t count = take_body(out)) return count;
        if (over_ && !has_held()) {
            check();
            return 0;
        }
        if (!has_held() && !paused_) client_.wait(context_.cancel);
    }
}

void HttpTransfer::finish() {
    std::array<uint8_t, 1> more;
    size_t count = 0;
    try {
        count = read(more);
    } catch (const Error& error) {
        if (error.code() != SHF_E_NET_TRANSIENT) throw;
    }
    if (count > 0)
        throw Error(SHF_E_NET_PERMANENT, "the server sends more bytes than it announced",
                    "copy the shard to a local disk");
}

void HttpTransfer::end(CURLcode result) {
    const ForkHold hold;
    result_ = result;
    over_ = true;
    libcurl().multi_remove_handle(client_.multi_.get(), easy_);
    added_ = false;
}

void HttpTransfer::count_times() {
    const auto nanoseconds = [&](CURLINFO info) {
        curl_off_t microseconds = 0;
        libcurl().easy_getinfo(easy_, info, &microseconds);
        return static_cast<uint64_t>(std::max<curl_off_t>(microseconds, 0)) * 1000;
    };
    const uint64_t dns = nanoseconds(CURLINFO_NAMELOOKUP_TIME_T);
    const uint64_t ready = nanoseconds(CURLINFO_PRETRANSFER_TIME_T);
    const uint64_t first = nanoseconds(CURLINFO_STARTTRANSFER_TIME_T);
    long connects = 0;
    libcurl().easy_getinfo(easy_, CURLINFO_NUM_CONNECTS, &connects);
    context_.use.dns_ns += dns;
    if (connects > 0 && ready > dns) context_.use.connect_ns += ready - dns;
    if (first > ready) context_.use.first_byte_ns += first - ready;
}

size_t HttpTransfer::on_header(char* data, size_t size, size_t count, void* self) {
    auto& transfer = *static_cast<HttpTransfer*>(self);
    const std::string_view line(data, size * count);
    try {
        // Trailers say nothing of what is known by now (RFC 9110, 6.5.1).
        if (transfer.has_headers_) return size * count;
        if (line.starts_with("HTTP/")) {  // another answer, after 100
            transfer.answer_ = {};
        } else if (line == "\r\n" || line == "\n") {
            long status = 0;
            libcurl().easy_getinfo(transfer.easy_, CURLINFO_RESPONSE_CODE, &status);
            transfer.answer_.status = static_cast<int>(status);
            if (status >= 200 && !transfer.has_headers_) {
                transfer.has_headers_ = true;
                transfer.count_times();
            }
        } else {
            transfer.answer_.add_header(line);
        }
    } catch (const std::bad_alloc&) {
        transfer.out_of_memory_ = true;
        return 0;
    }
    return size * count;
}

size_t HttpTransfer::on_body(char* data, size_t size, size_t count, void* self) {
    auto& transfer = *static_cast<HttpTransfer*>(self);
    const size_t bytes = size * count;
    const size_t room = transfer.target_.size() - transfer.filled_;
    const size_t waiting = transfer.held_.size() - transfer.held_begin_;
    if (room == 0 && (transfer.ahead_ < bytes || waiting > transfer.ahead_ - bytes)) {
        transfer.paused_ = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    // What came before goes first: there is room only when nothing is held.
    const size_t fits = std::min(bytes, room);
    std::copy_n(data, fits, transfer.target_.begin() + static_cast<ptrdiff_t>(transfer.filled_));
    transfer.filled_ += fits;
    try {
        if (transfer.ahead_ > 0 && transfer.held_.capacity() < transfer.ahead_)
            transfer.take_buffer();
        transfer.held_.insert(transfer.held_.end(), data + fits, data + bytes);
    } catch (const std::bad_alloc&) {
        transfer.out_of_memory_ = true;
        return 0;
    }
    transfer.context_.use.network_bytes += bytes;
    return bytes;
}

// New pages for each range would take longer than its bytes.
void HttpTransfer::take_buffer() {
    std::vector<std::vector<uint8_t>>& buffers = client_.buffers_;
    if (held_.empty() && !buffers.empty()) {
        held_ = std::move(buffers.back());
        buffers.pop_back();
        held_.clear();
    }
    held_.reserve(ahead_);
}

// Before the request, when it is known where it goes (H7): what is public must not lead to
// addresses that only this machine or its network can reach.
int HttpTransfer::on_request(void* self, char* to, char* /*from*/, int /*to_port*/,
                             int /*from_port*/) {
    auto& transfer = *static_cast<HttpTransfer*>(self);
    transfer.to_public_ = is_public_address(to);
    if (!transfer.public_only_ || *transfer.to_public_) return CURL_PREREQFUNC_OK;
    transfer.refused_address_ = true;
    return CURL_PREREQFUNC_ABORT;
}

// As many bytes as there are without waiting.
size_t HttpTransfer::take_body(std::span<uint8_t> out) {
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
        HttpTransfer& transfer;
        ~Forget() { transfer.target_ = {}, transfer.filled_ = 0; }
    };
    const Forget forget{*this};
    if (paused_) {
        paused_ = false;
        const ForkHold hold;
        if (const CURLcode code = libcurl().easy_pause(easy_, CURLPAUSE_CONT); code != CURLE_OK)
            end(code);
    }
    if (filled_ == 0 && !over_) client_.drive();
    return filled_;
}

void HttpTransfer::check() const {
    if (result_ != CURLE_OK) throw error_of(result_);
}

Error HttpTransfer::error_of(CURLcode code) const {
    if (out_of_memory_ || code == CURLE_OUT_OF_MEMORY) throw std::bad_alloc();
    if (refused_address_)
        return Error(SHF_E_NET_PERMANENT,
                     "the server redirects to an address of this machine or a private network",
                     "give the URL that it redirects to, or allow_private=true, if you trust it");
    const std::string said = error_[0] != '\0' ? error_ : libcurl().easy_strerror(code);
    // It shows the URL of the proxy, with user and password.
    if (said.find("Unsupported proxy") != said.npos)
        return Error(SHF_E_USAGE, "the proxy cannot be used: its URL or scheme is not supported",
                     "look at the option proxy, and at http_proxy and https_proxy");
    long connected = 0;
    if (libcurl().easy_getinfo(easy_, CURLINFO_HTTP_CONNECTCODE, &connected) == CURLE_OK &&
        (connected == 403 || connected == 407))
        return Error(SHF_E_AUTH, "the proxy answers " + std::to_string(connected),
                     "give its user and password by the option proxy, or HTTPS_PROXY");
    // OpenSSL names its routines in alerts and refusals; else the connection broke off.
    const bool by_tls = said.find("SSL routines") != said.npos;
    if ((code == CURLE_SSL_CONNECT_ERROR || code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR) &&
        by_tls && said.find("unexpected eof") == said.npos)
        return Error(SHF_E_TLS, said,
                     "look at the versions of TLS there, and at client_cert when the server wants "
                     "a certificate");
    switch (code) {
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_CACERT_BADFILE:
        case CURLE_SSL_CERTPROBLEM:
        case CURLE_SSL_CIPHER:
        case CURLE_SSL_ISSUER_ERROR:
            return Error(SHF_E_TLS, said, "for a certificate of your own give ca_file=PATH");
        case CURLE_URL_MALFORMAT:
            return Error(SHF_E_USAGE, "not a URL: " + said, "write special characters as %XX");
        case CURLE_UNSUPPORTED_PROTOCOL:
            return Error(SHF_E_NET_PERMANENT, "the server redirects to what is not safe: " + said,
                         "give the last URL itself, if you trust it");
        case CURLE_LOGIN_DENIED: return Error(SHF_E_AUTH, said, "look at the credentials");
        default: return Error(SHF_E_NET_TRANSIENT, said, "look at the network, or try again later");
    }
}

}  // namespace shf
