// One request on its way: sent, answered and read by the thread of its client. Nothing moves while
// that thread does not drive the client, but for what the system buffers.
#pragma once

#include "http/http_answer.h"
#include "http/http_client.h"
#include "http/http_request.h"
#include "io/source_context.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

class HttpTransfer {
  public:
    // Sends the request, whose `url` is set. Of the body up to `ahead` bytes are kept before they
    // are asked for. Throws Error. The references must outlive the transfer.
    HttpTransfer(HttpClient& client, const HttpRequest& request, const SourceContext& context,
                 size_t ahead);
    ~HttpTransfer();
    HttpTransfer(const HttpTransfer&) = delete;
    HttpTransfer& operator=(const HttpTransfer&) = delete;

    // Waits for the headers of the answer, which may have any status. Throws Error: NET_TRANSIENT,
    // NET_PERMANENT, TLS, CANCELLED, ...
    const HttpAnswer& answer();
    // Reads at least one byte of the body unless it is at its end; returns the count. Throws
    // Error(NET_TRANSIENT) when the connection ends before the body does.
    size_t read(std::span<uint8_t> out);
    // After the last byte that was asked for: the connection can be used again. A connection that
    // ends badly there is no fault; more bytes are, and throw Error.
    void finish();
    // True when bytes are there, or the end or a fault.
    [[nodiscard]] bool ready() const { return has_held() || over_; }
    // Whether the address that was connected to is a public one; nothing before that.
    [[nodiscard]] std::optional<bool> to_public() const { return to_public_; }

  private:
    friend class HttpClient;

    static size_t on_header(char* data, size_t size, size_t count, void* self);
    static size_t on_body(char* data, size_t size, size_t count, void* self);
    static int on_request(void* self, char* to, char* from, int to_port, int from_port);
    void set_up(const HttpRequest& request);
    void end(CURLcode result);  // by the client
    void count_times();
    void take_buffer();
    size_t take_body(std::span<uint8_t> out);
    void check() const;
    [[nodiscard]] bool has_held() const { return held_begin_ < held_.size(); }
    [[nodiscard]] Error error_of(CURLcode code) const;

    struct ListCleanup {
        void operator()(curl_slist* list) const { libcurl().slist_free_all(list); }
    };

    HttpClient& client_;
    const SourceContext context_;
    const size_t ahead_;
    CURL* easy_ = nullptr;  // of the client
    std::unique_ptr<curl_slist, ListCleanup> headers_;
    const std::string body_;  // of the request
    const std::string_view payload_;
    char error_[CURL_ERROR_SIZE] = {};
    bool added_ = false;
    bool has_headers_ = false;
    bool over_ = false;
    bool paused_ = false;
    CURLcode result_ = CURLE_OK;  // once it is over
    bool out_of_memory_ = false;
    const bool public_only_;  // what is private must not be connected to (H7)
    bool refused_address_ = false;
    std::optional<bool> to_public_;
    HttpAnswer answer_;
    std::span<uint8_t> target_;  // of take_body()
    size_t filled_ = 0;          // bytes of it
    std::vector<uint8_t> held_;
    size_t held_begin_ = 0;
};

}  // namespace shf
