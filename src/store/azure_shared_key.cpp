#include "store/azure_shared_key.h"

#include "core/lowered.h"
#include "core/trimmed.h"
#include "http/libcrypto.h"
#include "url/percent.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <ctime>
#include <map>

namespace shf {

namespace {

// Several of one name or parameter are one, with commas between their values.
using Values = std::map<std::string, std::string>;
void add(Values& values, std::string name, std::string_view value) {
    const auto [at, fresh] = values.try_emplace(std::move(name));
    if (!fresh) at->second += ',';
    at->second += value;
}

// What is in front of the first `mark`, which is taken out of `text` with it.
std::string_view take(std::string_view& text, char mark) {
    const auto at = std::find(text.begin(), text.end(), mark);
    const auto size = static_cast<size_t>(at - text.begin());
    const std::string_view part = text.substr(0, size);
    text.remove_prefix(std::min(size + 1, text.size()));
    return part;
}

Values headers_of(const HttpRequest& request) {
    Values headers;
    for (const std::string& line : request.headers) {
        const size_t colon = std::min(line.find(':'), line.size());
        add(headers, header_name(line),
            trimmed(std::string_view(line).substr(std::min(colon + 1, line.size())), " \t"));
    }
    // These are added when the request is sent.
    if (!request.if_match.empty()) add(headers, "if-match", request.if_match);
    if (!request.whole)
        add(headers, "range",
            "bytes=" + std::to_string(request.first) + "-" +
                (request.last ? std::to_string(*request.last) : ""));
    if (const size_t size = request.payload().size(); size > 0)
        add(headers, "content-length", std::to_string(size));
    return headers;
}

// The path as it is sent, and the parameters of the query decoded and in the order of their names.
std::string resource_of(const std::string& url, const std::string& account) {
    std::string_view query = url;
    query.remove_prefix(server_of(url).size());
    const std::string_view path = take(query, '?');
    Values parameters;
    while (!query.empty()) {
        std::string_view value = take(query, '&');
        const std::string_view name = take(value, '=');
        add(parameters, lowered(percent_decoded(name)), percent_decoded(value));
    }
    std::string result = "/" + account + (path.empty() ? "/" : std::string(path));
    for (const auto& [name, value] : parameters)
        result.append("\n").append(name).append(":").append(value);
    return result;
}

}  // namespace

std::string http_date(int64_t time) {
    constexpr std::array days = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    constexpr std::array months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const auto seconds = static_cast<std::time_t>(time);
    std::tm parts = {};
    ::gmtime_r(&seconds, &parts);
    std::array<char, 96> text;
    const int size = std::snprintf(text.data(), text.size(), "%s, %02d %s %04d %02d:%02d:%02d GMT",
                                   days.at(static_cast<size_t>(parts.tm_wday)), parts.tm_mday,
                                   months.at(static_cast<size_t>(parts.tm_mon)),
                                   parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec);
    return {text.data(), std::min(static_cast<size_t>(std::max(size, 0)), text.size() - 1)};
}

std::string shared_key_text(const HttpRequest& request, const std::string& account) {
    constexpr std::array signed_always = {"content-encoding",
                                          "content-language",
                                          "content-length",
                                          "content-md5",
                                          "content-type",
                                          "date",
                                          "if-modified-since",
                                          "if-match",
                                          "if-none-match",
                                          "if-unmodified-since",
                                          "range"};
    const Values headers = headers_of(request);
    std::string text = request.method + "\n";
    for (const char* const name : signed_always) {
        const auto at = headers.find(name);
        const bool none = at == headers.end() ||
                          (name == std::string_view("content-length") && at->second == "0");
        // x-ms-date is in its place.
        if (!none && !(name == std::string_view("date") && headers.contains("x-ms-date")))
            text += at->second;
        text += '\n';
    }
    for (const auto& [name, value] : headers)
        if (name.starts_with("x-ms-")) text.append(name).append(":").append(value).append("\n");
    return text + resource_of(request.url, account);
}

std::string shared_key(const HttpRequest& request, const std::string& account,
                       std::string_view key) {
    return "SharedKey " + account + ":" +
           base64_encode(text_of(hmac_sha256(key, shared_key_text(request, account))));
}

}  // namespace shf
