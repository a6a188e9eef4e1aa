#include "store/sigv4.h"

#include "core/lowered.h"
#include "http/libcrypto.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <map>

namespace shf {

namespace {

constexpr std::string_view algorithm = "AWS4-HMAC-SHA256";

// Without spaces around it, and one for each run of them.
std::string squeezed(std::string_view value) {
    std::string result;
    for (const char c : value) {
        const bool blank = c == ' ' || c == '\t';
        if (!blank)
            result += c;
        else if (!result.empty() && result.back() != ' ')
            result += ' ';
    }
    if (result.ends_with(' ')) result.pop_back();
    return result;
}

struct Headers {
    std::string lines;  // "name:value\n", sorted
    std::string names;  // "a;b"
};

Headers canonical_headers(const Fields& headers) {
    std::map<std::string, std::string> sorted;
    for (const auto& [name, value] : headers) {
        std::string key = lowered(name);
        const auto [at, fresh] = sorted.try_emplace(std::move(key));
        if (!fresh) at->second += ',';
        at->second += squeezed(value);
    }
    Headers result;
    for (const auto& [name, value] : sorted) {
        result.lines.append(name).append(":").append(value).append("\n");
        if (!result.names.empty()) result.names += ';';
        result.names += name;
    }
    return result;
}

std::string scope_text(const SigV4Scope& scope) {
    return amz_date(scope.time).substr(0, 8) + "/" + scope.region + "/" + scope.service +
           "/aws4_request";
}

}  // namespace

std::string percent_encode(std::string_view text, std::string_view keep) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    constexpr std::string_view marks = "-._~";
    std::string result;
    result.reserve(text.size());
    for (const char c : text) {
        if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
            marks.find(c) != marks.npos || keep.find(c) != keep.npos) {
            result += c;
        } else {
            const auto byte = static_cast<unsigned char>(c);
            result += '%';
            result += digits[byte >> 4U];
            result += digits[byte & 15U];
        }
    }
    return result;
}

std::string canonical_query(const Fields& parameters) {
    Fields encoded;
    for (const auto& [name, value] : parameters)
        encoded.emplace_back(percent_encode(name), percent_encode(value));
    std::sort(encoded.begin(), encoded.end());
    std::string result;
    for (const auto& [name, value] : encoded) {
        if (!result.empty()) result += '&';
        result.append(name).append("=").append(value);
    }
    return result;
}

std::string amz_date(int64_t time) {
    const auto seconds = static_cast<std::time_t>(time);
    std::tm parts = {};
    ::gmtime_r(&seconds, &parts);
    std::array<char, 32> text;
    const size_t size = std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &parts);
    return {text.data(), size};
}

std::string canonical_request(const SigV4Request& request) {
    const Headers headers = canonical_headers(request.headers);
    return request.method + "\n" + request.path + "\n" + request.query + "\n" + headers.lines +
           "\n" + headers.names + "\n" + request.payload_hash;
}

std::string string_to_sign(const SigV4Request& request, const SigV4Scope& scope) {
    return std::string(algorithm) + "\n" + amz_date(scope.time) + "\n" + scope_text(scope) + "\n" +
           hex(text_of(sha256(canonical_request(request))));
}

std::string sigv4(const SigV4Request& request, const AwsKeys& keys, const SigV4Scope& scope) {
    Sha256 key = hmac_sha256("AWS4" + keys.secret_key, amz_date(scope.time).substr(0, 8));
    for (const std::string_view part :
         {std::string_view(scope.region), std::string_view(scope.service),
          std::string_view("aws4_request")})
        key = hmac_sha256(text_of(key), part);
    const std::string signature =
        hex(text_of(hmac_sha256(text_of(key), string_to_sign(request, scope))));
    return std::string(algorithm) + " Credential=" + keys.access_key + "/" + scope_text(scope) +
           ", SignedHeaders=" + canonical_headers(request.headers).names +
           ", Signature=" + signature;
}

}  // namespace shf
