#include "http/http_headers.h"

#include "core/error.h"
#include "core/lowered.h"
#include "core/options.h"

#include <algorithm>
#include <string>

namespace shf {

namespace {

bool is_token(std::string_view name) {
    constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
    return !name.empty() && std::all_of(name.begin(), name.end(), [&](char c) {
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
               marks.find(c) != marks.npos;
    });
}

bool is_control(char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
}

std::string checked(std::string_view line) {
    const size_t colon = line.find(':');
    // The line is not shown: it may hold a secret.
    if (colon == line.npos || !is_token(line.substr(0, colon)) ||
        std::any_of(line.begin(), line.end(), is_control))
        throw Error(SHF_E_USAGE, "option headers: a line is not \"Name: value\"",
                    "give one header on each line");
    if (lowered(line.substr(0, colon)) == "range")
        throw Error(SHF_E_USAGE, "option headers: Range is what this library asks for itself",
                    "leave it out");
    return std::string(line);
}

// Any value may be one. "Bearer abc": the part that a server sends back may be the last one.
void add_secrets(HttpRequest& request, const std::string& line) {
    constexpr size_t shortest = 8;  // shorter ones are words of messages
    const std::string value = line.substr(std::min(line.find(':') + 1, line.size()));
    const std::string last = value.substr(value.find_last_of(" \t") + 1);
    if (last.size() >= shortest) request.secrets.push_back(last);
}

}  // namespace

void add_own_headers(HttpRequest& request, const Options& options) {
    std::string_view rest = options.headers;
    while (!rest.empty()) {
        const size_t end = std::min(rest.find('\n'), rest.size());
        if (end > 0) {
            request.headers.push_back(checked(rest.substr(0, end)));
            add_secrets(request, request.headers.back());
        }
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
}

void add_token(HttpRequest& request, const Options& options) {
    if (std::any_of(options.token.begin(), options.token.end(), is_control))
        throw Error(SHF_E_USAGE, "option token: control characters in it",
                    "give the token without the end of its line");
    if (options.token.empty()) return;
    request.headers.push_back("Authorization: Bearer " + options.token);
    request.secrets.push_back(options.token);
}

}  // namespace shf
