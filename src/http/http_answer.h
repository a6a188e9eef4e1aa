// What a server said of an object: status line and headers of one answer (RFC 9110).
#pragma once

#include "core/error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shf {

// Content-Range: bytes first-last/total (RFC 9110, 14.4).
struct ContentRange {
    uint64_t first = 0, last = 0;   // meaningless when `unsatisfied`
    std::optional<uint64_t> total;  // none for "*"
    bool unsatisfied = false;       // "bytes */total"
};

// The error of an object of which the server now has another version (H8).
Error object_changed();
// That of an answer, or its headers, that end before they are whole (H1, H2).
Error answer_cut_off();

// Nothing for a text that is no such header.
std::optional<ContentRange> parse_content_range(std::string_view text);

struct HttpAnswer {
    int status = 0;
    std::optional<uint64_t> length;     // Content-Length: of the body
    std::optional<ContentRange> range;  // none when it is missing or cannot be understood
    std::string etag;                   // with quotes, "W/" and all
    int64_t modified = 0;               // Last-Modified, nanoseconds since 1970; 0: not given
    std::string content_type;           // lower case
    std::string retry_after;            // as it came
    std::string request_id;             // of an object store
    // The first 256 headers: names in lower case, and values.
    std::vector<std::pair<std::string, std::string>> headers;
    bool all_headers = true;  // there were no more

    // Takes over one header line, without its end.
    void add_header(std::string_view line);
    // The value of a header, whose name is given in lower case; empty: there is none.
    [[nodiscard]] std::string_view header(std::string_view name) const;
    // The values of all headers of that name, with ", " between them (RFC 9110, 5.3).
    [[nodiscard]] std::string headers_of(std::string_view name) const;
    // The tag when equal tags mean equal bytes (RFC 9110, 8.8.3.2); else empty.
    [[nodiscard]] std::string_view strong_tag() const {
        return etag.size() > 2 && etag.starts_with('"') && etag.ends_with('"')
                   ? std::string_view(etag)
                   : std::string_view();
    }
    // The length of the whole object, as far as this answer says.
    [[nodiscard]] std::optional<uint64_t> total() const;
    // Seconds, or a date (RFC 9110, 10.2.3), as nanoseconds from now; nothing when it says nothing.
    [[nodiscard]] std::optional<uint64_t> pause() const;
    // The error of a status that is no success.
    [[nodiscard]] Error error() const;
};

}  // namespace shf
