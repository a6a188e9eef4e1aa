// An easy handle of libcurl with a multi handle of its own, so that waiting can be cancelled.
#pragma once

#include "http/http_transfer.h"
#include "http/libcurl.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shf {

class HttpConnection {
  public:
    // One that was used for this server before, or a new one. Throws Error.
    static std::unique_ptr<HttpConnection> take(const std::string& server);
    // Keeps it for the next transfer, when its last one is over.
    static void give_back(std::unique_ptr<HttpConnection> connection) noexcept;

    ~HttpConnection();
    HttpConnection(const HttpConnection&) = delete;
    HttpConnection& operator=(const HttpConnection&) = delete;

    void start(const HttpRequest& request, const Options& options);
    // Moves what can be moved, and waits until something can unless the transfer is over. Throws
    // Error(CANCELLED), and TIMEOUT of an opening.
    void move_on(const Cancel& cancel);
    // Bytes of the body go to `out`, as many as there are without waiting; what curl has given
    // beyond that is kept for the next call.
    size_t take_body(std::span<uint8_t> out);
    // Throws Error when the transfer is over and failed. After all bytes that came were taken.
    void check() const;

    // It was made in this process.
    [[nodiscard]] bool is_ours() const;
    [[nodiscard]] bool has_headers() const { return has_headers_; }
    [[nodiscard]] bool over() const { return over_; }
    [[nodiscard]] bool has_held() const { return held_begin_ < held_.size(); }
    [[nodiscard]] const HttpAnswer& answer() const { return answer_; }

  private:
    explicit HttpConnection(std::string server);

    static size_t on_header(char* data, size_t size, size_t count, void* self);
    static size_t on_body(char* data, size_t size, size_t count, void* self);
    static int on_request(void* self, char* to, char* from, int to_port, int from_port);
    void drive();
    [[nodiscard]] Error error_of(CURLcode code) const;

    struct EasyCleanup {
        void operator()(CURL* easy) const { libcurl().easy_cleanup(easy); }
    };
    struct MultiCleanup {
        void operator()(CURLM* multi) const { libcurl().multi_cleanup(multi); }
    };
    struct ListCleanup {
        void operator()(curl_slist* list) const { libcurl().slist_free_all(list); }
    };

    const std::string server_;
    const uint64_t generation_;  // of forks: a child must not talk on its parent's connections
    std::unique_ptr<CURLM, MultiCleanup> multi_;
    std::unique_ptr<CURL, EasyCleanup> easy_;
    std::unique_ptr<curl_slist, ListCleanup> headers_;
    char error_[CURL_ERROR_SIZE] = {};
    bool added_ = false;
    bool has_headers_ = false;
    bool over_ = false;
    bool paused_ = false;
    CURLcode result_ = CURLE_OK;  // once it is over
    bool out_of_memory_ = false;
    bool refused_redirect_ = false;
    std::optional<bool> first_was_public_;  // the address that it was connected to first
    HttpAnswer answer_;
    std::span<uint8_t> target_;  // of take_body()
    size_t filled_ = 0;          // bytes of it
    std::vector<uint8_t> held_;
    size_t held_begin_ = 0;
};

}  // namespace shf
