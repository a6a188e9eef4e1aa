#include "http/http_answer.h"

#include "core/lowered.h"
#include "core/times.h"
#include "core/trimmed.h"
#include "http/libcurl.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <ctime>
#include <limits>

namespace shf {

namespace {

constexpr std::string_view blanks = " \t\r\n";

// Digits alone, at most INT64_MAX.
std::optional<uint64_t> number(std::string_view text) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() ||
        value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
        return std::nullopt;
    return value;
}

// The most that a number can be where seconds are more than that.
uint64_t in_nanoseconds(uint64_t seconds) {
    constexpr auto factor = static_cast<uint64_t>(second);
    return std::min(seconds, std::numeric_limits<uint64_t>::max() / factor) * factor;
}

// Of a header like `"resolvers";r=0;t=55`: no request is left (r) for so many seconds (t)
// (draft-ietf-httpapi-ratelimit-headers-10, 3). Hugging Face sends it in place of Retry-After.
std::optional<uint64_t> pause_of_limit(std::string_view text) {
    std::optional<uint64_t> left, seconds;
    while (!text.empty()) {
        const size_t end = std::min(text.find_first_of(";,"), text.size());
        const std::string_view part = trimmed(text.substr(0, end), blanks);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (part.starts_with("r=")) left = number(part.substr(2));
        if (part.starts_with("t=")) seconds = number(part.substr(2));
    }
    if (left != 0U || !seconds) return std::nullopt;
    return in_nanoseconds(*seconds);
}

// Of which any is kept: a server may send them without end.
constexpr size_t most_headers = 256;

}  // namespace

std::optional<ContentRange> parse_content_range(std::string_view text) {
    text = trimmed(text, blanks);
    if (lowered(text.substr(0, 5)) != "bytes") return std::nullopt;
    text = trimmed(text.substr(5), blanks);
    const size_t slash = text.find('/');
    if (slash == text.npos) return std::nullopt;
    const std::string_view range = text.substr(0, slash), total = text.substr(slash + 1);
    ContentRange result;
    if (total != "*") {
        result.total = number(total);
        if (!result.total) return std::nullopt;
    }
    if (range == "*") {
        result.unsatisfied = true;
        return result.total ? std::optional(result) : std::nullopt;
    }
    const size_t dash = range.find('-');
    if (dash == range.npos) return std::nullopt;
    const auto first = number(range.substr(0, dash)), last = number(range.substr(dash + 1));
    if (!first || !last || *last < *first || (result.total && *last >= *result.total))
        return std::nullopt;
    result.first = *first;
    result.last = *last;
    return result;
}

void HttpAnswer::add_header(std::string_view line) {
    const size_t colon = line.find(':');
    if (colon == line.npos) return;
    const std::string name = lowered(line.substr(0, colon));
    const std::string_view value = trimmed(line.substr(colon + 1), blanks);
    if (headers.size() < most_headers)
        headers.emplace_back(name, value);
    else
        all_headers = false;
    if (name == "content-length") {
        length = number(value);
    } else if (name == "content-range") {
        range = parse_content_range(value);
    } else if (name == "etag") {
        // An empty tag tells nothing apart.
        if (value != "\"\"" && value != "W/\"\"" && value != "\"") etag = value;
    } else if (name == "last-modified") {
        const time_t when = libcurl().getdate(std::string(value).c_str(), nullptr);
        if (when > 0 && when < std::numeric_limits<int64_t>::max() / second)
            modified = static_cast<int64_t>(when) * second;
    } else if (name == "content-type") {
        content_type = lowered(value);
    } else if (name == "retry-after") {
        retry_after = value;
    } else if (name == "x-amz-request-id" || name == "x-request-id" || name == "x-ms-request-id" ||
               name == "x-guploader-uploadid") {
        request_id = value;
    }
}

std::string_view HttpAnswer::header(std::string_view name) const {
    for (const auto& [key, value] : headers)
        if (key == name) return value;
    return {};
}

std::string HttpAnswer::headers_of(std::string_view name) const {
    std::string result;
    for (const auto& [key, value] : headers)
        if (key == name) result.append(result.empty() ? "" : ", ").append(value);
    return result;
}

std::optional<uint64_t> HttpAnswer::total() const {
    if (range) return range->total;
    if (status == 200) return length;
    return std::nullopt;
}

std::optional<uint64_t> HttpAnswer::pause() const {
    if (retry_after.empty()) return pause_of_limit(header("ratelimit"));
    if (const auto seconds = number(retry_after)) return in_nanoseconds(*seconds);
    const time_t when = libcurl().getdate(retry_after.c_str(), nullptr);
    if (when < 0) return std::nullopt;
    const int64_t now = seconds_now();
    return when <= now ? 0 : in_nanoseconds(static_cast<uint64_t>(when - now));
}

Error object_changed() {
    return Error(SHF_E_CHANGED, "the object became another version while it was read",
                 "write new shards under new names");
}

Error answer_cut_off() {
    return Error(SHF_E_NET_TRANSIENT, "the server ends the answer too early",
                 "look at the network, or try again later");
}

Error HttpAnswer::error() const {
    const std::string said = "the server answers " + std::to_string(status) +
                             (request_id.empty() ? "" : " (request " + escape(request_id) + ")");
    switch (status) {
        case 401:
        case 403: return Error(SHF_E_AUTH, said, "give the credentials that this server wants");
        case 407:
            return Error(SHF_E_AUTH, said + ": it is a proxy",
                         "give its user and password by the option proxy, or HTTPS_PROXY");
        case 404:
        case 410:
            return Error(SHF_E_NET_PERMANENT, said + ": there is no such object",
                         "look at the spelling of the URL");
        case 412: return object_changed();
        case 416:
            return Error(SHF_E_CHANGED, said + ": the object became shorter while it was read",
                         "write new shards under new names");
        case 429:
        case 503: return Error(SHF_E_THROTTLED, said, "read with fewer processes, or later");
        default: break;
    }
    // The same request may succeed a little later (H3).
    if (status == 408 || (status >= 500 && status != 501 && status != 505))
        return Error(SHF_E_NET_TRANSIENT, said, "try again later");
    return Error(SHF_E_NET_PERMANENT, said, "look at the URL with a browser or curl");
}

}  // namespace shf
