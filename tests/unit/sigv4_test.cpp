// Signatures: AWS's test suite, and the examples of the documentation of S3.
#include "store/sigv4.h"
#include "core/error.h"
#include "http/libcrypto.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace shf {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    EXPECT_TRUE(file) << path;
    std::string text{std::istreambuf_iterator<char>(file), {}};
    std::erase(text, '\r');
    return text;
}

std::string decoded(std::string_view text) {
    std::string result;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '%' && i + 2 < text.size()) {
            result += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
            i += 2;
        } else {
            result += text[i];
        }
    }
    return result;
}

// A request of the suite. Its paths are not encoded yet.
SigV4Request parse(const std::string& text) {
    SigV4Request result;
    const size_t head_end = std::min(text.find("\n\n"), text.size());
    const std::string body = head_end + 2 <= text.size() ? text.substr(head_end + 2) : "";
    result.payload_hash = hex(text_of(sha256(body)));
    size_t at = text.find('\n');
    const std::string line = text.substr(0, at);
    const size_t target = line.find(' ') + 1, end = line.rfind(' ');
    result.method = line.substr(0, target - 1);
    const std::string url = line.substr(target, end - target);
    const size_t query = std::min(url.find('?'), url.size());
    result.path = percent_encode(decoded(url.substr(0, query)), "/");
    Fields parameters;
    for (size_t i = query + 1; i < url.size();) {
        const size_t next = std::min(url.find('&', i), url.size());
        const std::string part = url.substr(i, next - i);
        const size_t equals = std::min(part.find('='), part.size());
        parameters.emplace_back(decoded(part.substr(0, equals)),
                                decoded(part.substr(std::min(equals + 1, part.size()))));
        i = next + 1;
    }
    result.query = canonical_query(parameters);
    while (at < head_end) {
        const size_t next = std::min(text.find('\n', at + 1), head_end);
        const std::string header = text.substr(at + 1, next - at - 1);
        at = next;
        if (header.starts_with(' ')) {
            result.headers.back().second += header;
        } else if (const size_t colon = header.find(':'); colon != header.npos) {
            result.headers.emplace_back(header.substr(0, colon), header.substr(colon + 1));
        }
    }
    return result;
}

// Resolved paths (normalize-path) are for other services: in S3 dots and slashes belong to the
// key. Of the two cases of session tokens one is not of the suite, and its token is a hash.
TEST(SigV4, suite_of_aws) {
    const AwsKeys keys = {.access_key = "AKIDEXAMPLE",
                          .secret_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};
    const SigV4Scope scope = {.region = "us-east-1", .service = "service", .time = 1440938160};
    const std::vector<std::string> others = {"get-relative",
                                             "get-relative-relative",
                                             "get-slashes",
                                             "get-slash",
                                             "get-slash-dot-slash",
                                             "get-slash-pointless-dot",
                                             "get-vanilla-with-session-token"};
    const char* const suite = std::getenv("SHARDFEED_SIGV4_SUITE");
    ASSERT_NE(suite, nullptr) << "the folder tests/data/aws4_testsuite; meson test says it";
    int cases = 0;
    for (const fs::directory_entry& file : fs::directory_iterator(suite)) {
        if (file.path().extension() != ".req") continue;
        const std::string name = file.path().stem();
        if (std::find(others.begin(), others.end(), name) != others.end()) continue;
        SCOPED_TRACE(name);
        const auto expected = [&](const char* extension) {
            return content(fs::path(file.path()).replace_extension(extension));
        };
        const SigV4Request request = parse(content(file.path()));
        EXPECT_EQ(canonical_request(request), expected(".creq"));
        EXPECT_EQ(string_to_sign(request, scope), expected(".sts"));
        EXPECT_EQ(sigv4(request, keys, scope), expected(".authz"));
        ++cases;
    }
    EXPECT_EQ(cases, 27);
}

// "Examples: Signature Calculations in AWS Signature Version 4" of the S3 API reference.
TEST(SigV4, examples_of_s3) {
    const AwsKeys keys = {.access_key = "AKIAIOSFODNN7EXAMPLE",
                          .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
    const SigV4Scope scope = {.region = "us-east-1", .service = "s3", .time = 1369353600};
    SigV4Request get = {.path = "/test.txt",
                        .headers = {{"Host", "examplebucket.s3.amazonaws.com"},
                                    {"Range", "bytes=0-9"},
                                    {"x-amz-content-sha256", std::string(empty_payload)},
                                    {"x-amz-date", "20130524T000000Z"}},
                        .payload_hash = std::string(empty_payload)};
    EXPECT_TRUE(
        sigv4(get, keys, scope)
            .ends_with("Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c603"
                       "6bdb41"));
    get.path = "/";
    get.headers.erase(get.headers.begin() + 1);
    get.query = canonical_query({{"prefix", "J"}, {"max-keys", "2"}});
    EXPECT_TRUE(
        sigv4(get, keys, scope)
            .ends_with("Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef6"
                       "9dc6f7"));
    get.query = canonical_query({{"lifecycle", ""}});
    EXPECT_TRUE(
        sigv4(get, keys, scope)
            .ends_with("Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136"
                       "783543"));
}

TEST(SigV4, every_reserved_byte_is_encoded) {
    EXPECT_EQ(percent_encode("= +%&?#:~'()!*\n\xc3\xa9", "/"),
              "%3D%20%2B%25%26%3F%23%3A~%27%28%29%21%2A%0A%C3%A9");
    EXPECT_EQ(canonical_query({{"b", "/"}, {"a", "1 +"}, {"a", ""}}), "a=&a=1%20%2B&b=%2F");
}

// RFC 4231, test cases 2; FIPS 180-4.
TEST(Libcrypto, known_hashes) {
    EXPECT_EQ(hex(text_of(sha256(""))), empty_payload);
    EXPECT_EQ(hex(text_of(hmac_sha256("Jefe", "what do ya want for nothing?"))),
              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    EXPECT_EQ(sha1_hex("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
}

TEST(Libcrypto, what_is_no_key_is_refused) {
    try {
        (void)rsa_sha256("-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n", "x");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), SHF_E_AUTH);
        EXPECT_EQ(std::string(error.what()).find("c2Vj"), std::string::npos);
    }
}

}  // namespace
}  // namespace shf
