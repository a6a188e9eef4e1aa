// What a server is asked.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

struct HttpRequest {
    std::string target{};               // what is wanted, as the store names it; percent-encoded
    std::string method = "GET";         // HEAD, PUT, POST, DELETE
    uint64_t first = 0;                 // the range that is asked for: from this byte ...
    std::optional<uint64_t> last;       // ... to this one; nothing: to the end
    bool whole = true;                  // without a range
    bool digest = false;                // that of the object is wanted with the answer
    std::string if_match{};             // only this version; empty: any
    std::string body{};                 // of PUT and POST; few servers want one of GET
    std::span<const uint8_t> upload{};  // in place of it: not copied, until the answer is there

    // Set by HttpStore::prepare(), which may be called again.
    std::string url{};                   // http:// or https://, without user and password
    std::vector<std::string> headers{};  // "Name: value"; for the host of `url` alone (H6)
    std::string user{}, password{};      // for basic authentication; for that host alone
    bool certificate = false;            // that of the client, for that host alone
    // What no message shows, wherever the server sends it back. May be set before too.
    std::vector<std::string> secrets{};

    // For services that are near, or not there at all.
    std::chrono::milliseconds connect_limit{10'000};
    std::chrono::milliseconds limit{0};  // for all of it; 0: as long as bytes come
    bool near = false;                   // without proxy
    bool public_only = false;            // not to addresses of this machine or of private networks

    // What is sent behind the headers.
    [[nodiscard]] std::string_view payload() const {
        if (upload.empty()) return body;
        return {reinterpret_cast<const char*>(upload.data()), upload.size()};
    }
};

// The value of a header of `request`, by its name in lower case; empty: it has none.
std::string sent_header(const HttpRequest& request, std::string_view name);
// A name in lower case, of a line "Name: value".
std::string header_name(std::string_view line);

// "https://host:port" of a URL: whatever is asked for there goes over the same connections.
std::string server_of(const std::string& url);

}  // namespace shf
