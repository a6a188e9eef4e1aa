// One GET request: asked, waited for and read by the thread that wants the bytes. Nothing moves
// while nobody reads, but for what the system buffers.
#pragma once

#include "http/http_answer.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shf {

class Cancel;
struct Options;

// "https://host:port" of a URL: whatever is asked for there goes over the same connections.
std::string server_of(const std::string& url);

struct HttpRequest {
    std::string url;
    uint64_t first = 0;            // the range that is asked for: from this byte ...
    std::optional<uint64_t> last;  // ... to this one; nothing: to the end
    bool whole = false;            // without a range
    std::string if_match;          // only this version; empty: any
};

// A connection and what libcurl keeps with it. Kept after a transfer for the next one to that host.
class HttpConnection;

class HttpTransfer {
  public:
    // Connects, sends, and waits for the headers of the answer. Throws Error: NET_TRANSIENT,
    // NET_PERMANENT, TLS, CANCELLED, ... The answer may have any status. The references must
    // outlive the transfer.
    HttpTransfer(const HttpRequest& request, const Options& options, const Cancel& cancel);
    ~HttpTransfer();
    HttpTransfer(const HttpTransfer&) = delete;
    HttpTransfer& operator=(const HttpTransfer&) = delete;

    [[nodiscard]] const HttpAnswer& answer() const;
    // Reads at least one byte of the body unless it is at its end; returns the count. Throws
    // Error(NET_TRANSIENT) when the connection ends before the body does.
    size_t read(std::span<uint8_t> out);
    // After the last byte that was asked for: the connection can be used again. A connection that
    // ends badly there is no fault; more bytes are, and throw Error.
    void finish();
    // False in a forked child: the connection is that of the parent process.
    [[nodiscard]] bool is_ours() const;
    // The body was read to its end.
    [[nodiscard]] bool ended() const;

  private:
    const Cancel& cancel_;
    std::unique_ptr<HttpConnection> connection_;
};

}  // namespace shf
