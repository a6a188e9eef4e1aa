// A multi handle of libcurl with the connections that it keeps: what one reader makes its requests
// with, several at once.
#pragma once

#include "http/libcurl.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace shf {

class Cancel;
class HttpTransfer;

// One thread at a time.
class HttpClient {
  public:
    // One whose connections go to `server` (see server_of()), or a new one.
    static std::unique_ptr<HttpClient> take(const std::string& server);
    // Keeps it for the next reader. All of its transfers are gone.
    static void give_back(std::unique_ptr<HttpClient> client) noexcept;

    ~HttpClient();
    HttpClient(const HttpClient&) = delete;
    HttpClient& operator=(const HttpClient&) = delete;

    // Moves what can be moved. Throws Error.
    void drive();
    // Waits until something can be moved, a cancel, or `longest`. Throws Error(CANCELLED), and
    // TIMEOUT of an opening.
    void wait(const Cancel& cancel, std::chrono::milliseconds longest = std::chrono::seconds(1));
    // False in a forked child: the connections are those of the parent process.
    [[nodiscard]] bool is_ours() const;

  private:
    friend class HttpTransfer;

    explicit HttpClient(std::string server);
    CURL* add(HttpTransfer& transfer);
    void remove(CURL* easy, bool running) noexcept;
    void keep(std::vector<uint8_t> buffer) noexcept;

    struct MultiCleanup {
        void operator()(CURLM* multi) const { libcurl().multi_cleanup(multi); }
    };

    const std::string server_;
    const uint64_t generation_;  // of forks: a child must not talk on its parent's connections
    std::unique_ptr<CURLM, MultiCleanup> multi_;
    std::vector<CURL*> spare_;                   // easy handles without a transfer
    std::vector<std::vector<uint8_t>> buffers_;  // of transfers that are gone, to be used again
};

// Gives a client back when it is dropped.
struct HttpClientReturn {
    void operator()(HttpClient* client) const noexcept {
        HttpClient::give_back(std::unique_ptr<HttpClient>(client));
    }
};
using TakenHttpClient = std::unique_ptr<HttpClient, HttpClientReturn>;

}  // namespace shf
