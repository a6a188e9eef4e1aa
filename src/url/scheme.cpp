#include "url/scheme.h"

#include "core/error.h"
#include "core/lowered.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace shf {

namespace {

int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

}  // namespace

std::string uri_scheme(std::string_view text) {
    const size_t colon = text.find(':');
    if (colon == text.npos || colon == 0 || std::isalpha(static_cast<unsigned char>(text[0])) == 0)
        return {};
    std::string scheme(text.substr(0, colon));
    for (char& c : scheme) {
        if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '+' && c != '-' && c != '.')
            return {};
        c = lowered(c);
    }
    return scheme;
}

std::string scheme_of(std::string_view url) {
    if (url == "-") return "-";
    if (url.starts_with("pipe:")) return "pipe";
    const std::string scheme = uri_scheme(url);
    const std::string_view rest = url.substr(scheme.size());
    const bool is_file = scheme == "file" && rest.size() > 1;
    return is_file || rest.starts_with("://") ? scheme : std::string();
}

bool is_local_path(std::string_view url) {
    return !url.empty() && scheme_of(url).empty();
}

std::string path_of(std::string_view url) {
    if (scheme_of(url) != "file") return std::string(url);
    std::string_view rest = url.substr(std::string_view("file:").size());
    if (rest.find_first_of("?#") != rest.npos)
        throw Error(SHF_E_USAGE, "a file: URL with a query or fragment",
                    "write %3F for ? and %23 for #, or give the plain path");
    if (rest.starts_with("//")) {
        rest.remove_prefix(2);
        const std::string_view host = rest.substr(0, rest.find('/'));
        std::string name(host);
        std::transform(name.begin(), name.end(), name.begin(), [](char c) { return lowered(c); });
        if (!name.empty() && name != "localhost")
            throw Error(SHF_E_USAGE, "a file: URL of host \"" + escape(host) + "\"",
                        "an absolute path has three slashes: file:///path");
        rest.remove_prefix(host.size());
    }
    std::string path;
    for (size_t i = 0; i < rest.size(); ++i) {
        char c = rest[i];
        if (c == '%') {
            const int high = i + 2 < rest.size() ? hex_value(rest[i + 1]) : -1;
            const int low = i + 2 < rest.size() ? hex_value(rest[i + 2]) : -1;
            if (high < 0 || low < 0 || (high == 0 && low == 0))
                throw Error(SHF_E_USAGE, "a bad %-escape in a file: URL",
                            "write %25 for a percent sign, or give the plain path");
            c = static_cast<char>(high << 4 | low);
            i += 2;
        }
        path += c;
    }
    if (path.empty()) throw Error(SHF_E_USAGE, "a file: URL without a path", "give file:///PATH");
    return path;
}

bool is_message_url(std::string_view url) {
    if (!url.starts_with('z')) return false;  // this is asked for each of a million shards
    const std::string_view scheme = url.substr(0, url.find_first_of("+:"));
    return scheme.size() < url.size() && std::find(message_schemes.begin(), message_schemes.end(),
                                                   scheme) != message_schemes.end();
}

bool starts_at_home(std::string_view url) {
    return url.starts_with("~/");
}

std::string from_home(const std::string& url, std::string_view marked, char mark) {
    if (!starts_at_home(url)) return url;
    const char* home = std::getenv("HOME");
    if (home == nullptr || *home == '\0')
        throw Error(SHF_E_USAGE, "HOME is not set, which ~/ means: " + escape(url),
                    "set it, or write the whole path");
    std::string path;
    for (const char* c = home; *c != '\0'; ++c) {
        if (marked.find(*c) != marked.npos) path += mark;
        path += *c;
    }
    return path.append(url, 1);
}

}  // namespace shf
