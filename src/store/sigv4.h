// AWS Signature Version 4: the authorization of a request by a secret key that is not sent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shf {

struct AwsKeys {
    std::string access_key{}, secret_key{};
    std::string session_token{};  // empty: of keys that last

    bool operator==(const AwsKeys&) const = default;
};

using Fields = std::vector<std::pair<std::string, std::string>>;

struct SigV4Request {
    std::string method = "GET";
    std::string path = "/";  // as it is sent: percent-encoded, once
    std::string query{};     // canonical_query()
    Fields headers{};        // all that are signed, with host and x-amz-date; any order and case
    std::string payload_hash{};
};

struct SigV4Scope {
    std::string region, service;
    int64_t time;  // seconds since 1970
};

// The hash of no bytes, for requests without a body.
inline constexpr std::string_view empty_payload =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

// All but letters, digits, "-", "." , "_", "~" and the bytes of `keep` as %XX.
std::string percent_encode(std::string_view text, std::string_view keep = {});
// Names and values, which are not encoded yet, as a query in the order that is signed.
std::string canonical_query(const Fields& parameters);
// "20130524T000000Z".
std::string amz_date(int64_t time);

// The steps, for their tests.
std::string canonical_request(const SigV4Request& request);
std::string string_to_sign(const SigV4Request& request, const SigV4Scope& scope);
// The value of the header Authorization. Throws Error(UNSUPPORTED) without libcrypto.
std::string sigv4(const SigV4Request& request, const AwsKeys& keys, const SigV4Scope& scope);

}  // namespace shf
