#include "http/http_client.h"

#include "core/cancel.h"
#include "core/error.h"
#include "core/fork.h"
#include "core/per_process.h"
#include "http/http_transfer.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <new>
#include <utility>

namespace shf {

namespace {

// So many are kept for other readers.
constexpr size_t most_idle = 64;
// Of transfers that are over: while it has a reader.
constexpr size_t most_buffers = 2;

struct Idle {
    std::mutex mutex;
    std::multimap<std::string, std::unique_ptr<HttpClient>> clients;
};
constinit PerProcess<Idle> idle_clients;

}  // namespace

std::unique_ptr<HttpClient> HttpClient::take(const std::string& server) {
    {
        Idle& idle = idle_clients.get();
        const std::lock_guard lock(idle.mutex);
        const auto at = idle.clients.find(server);
        if (at != idle.clients.end()) {
            std::unique_ptr<HttpClient> found = std::move(at->second);
            idle.clients.erase(at);
            return found;
        }
    }
    return std::unique_ptr<HttpClient>(new HttpClient(server));
}

void HttpClient::give_back(std::unique_ptr<HttpClient> client) noexcept {
    if (!client) return;
    // To close the connections of a parent process would tell the server.
    if (!client->is_ours()) return (void)client.release();
    client->buffers_.clear();
    try {
        Idle& idle = idle_clients.get();
        const std::lock_guard lock(idle.mutex);
        if (idle.clients.size() < most_idle)
            idle.clients.emplace(client->server_, std::move(client));
    } catch (const std::bad_alloc&) {  // its connections are closed
    }
}

HttpClient::HttpClient(std::string server)
    : server_(std::move(server)), generation_(fork_generation()) {
    const ForkHold hold;
    multi_.reset(libcurl().multi_init());
    if (!multi_) throw std::bad_alloc();
}

HttpClient::~HttpClient() {
    const ForkHold hold;
    for (CURL* const easy : spare_) libcurl().easy_cleanup(easy);
    multi_.reset();
}

bool HttpClient::is_ours() const {
    return generation_ == fork_generation();
}

CURL* HttpClient::add(HttpTransfer& transfer) {
    const ForkHold hold;
    spare_.reserve(spare_.size() + 1);
    CURL* easy = nullptr;
    if (spare_.empty()) {
        easy = libcurl().easy_init();
        if (!easy) throw std::bad_alloc();
    } else {
        easy = spare_.back();
        spare_.pop_back();
        libcurl().easy_reset(easy);
    }
    libcurl().easy_setopt(easy, CURLOPT_PRIVATE, &transfer);
    return easy;
}

void HttpClient::remove(CURL* easy, bool running) noexcept {
    const ForkHold hold;
    if (running) libcurl().multi_remove_handle(multi_.get(), easy);
    if (!running && spare_.size() < spare_.capacity())
        spare_.push_back(easy);
    else
        libcurl().easy_cleanup(easy);
}

void HttpClient::keep(std::vector<uint8_t> buffer) noexcept {
    try {
        if (buffers_.size() < most_buffers) buffers_.push_back(std::move(buffer));
    } catch (const std::bad_alloc&) {  // the next transfer gets a new one
    }
}

void HttpClient::drive() {
    const ForkHold hold;
    int running = 0;
    const CURLMcode code = libcurl().multi_perform(multi_.get(), &running);
    if (code == CURLM_OUT_OF_MEMORY) throw std::bad_alloc();
    if (code != CURLM_OK)
        throw Error(SHF_E_INTERNAL, std::string("libcurl: ") + libcurl().multi_strerror(code));
    int left = 0;
    while (const CURLMsg* message = libcurl().multi_info_read(multi_.get(), &left)) {
        if (message->msg != CURLMSG_DONE) continue;
        HttpTransfer* transfer = nullptr;
        libcurl().easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
        transfer->end(message->data.result);
    }
}

void HttpClient::wait(const Cancel& cancel, std::chrono::milliseconds longest) {
    cancel.check();
    const int fd = cancel.fd();
    curl_waitfd extra = {.fd = fd, .events = CURL_WAIT_POLLIN, .revents = 0};
    // An opening is asked every few milliseconds; else the descriptor wakes.
    const int most = static_cast<int>(longest.count());
    const int time = fd < 0 ? std::min(5, most) : most;
    // No fork is held: it takes no lock of OpenSSL.
    libcurl().multi_poll(multi_.get(), fd < 0 ? nullptr : &extra, fd < 0 ? 0 : 1, time, nullptr);
    cancel.check();
}

}  // namespace shf
