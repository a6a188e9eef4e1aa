// What is read out of the headers of an HTTP answer, and which addresses are public.
#include "http/http_answer.h"
#include "http/http_address.h"

#include <gtest/gtest.h>
#include <shardfeed.h>

#include <ctime>
#include <initializer_list>
#include <string>
#include <string_view>

namespace shf {
namespace {

HttpAnswer answer_of(int status, std::initializer_list<std::string_view> headers) {
    HttpAnswer answer;
    answer.status = status;
    for (const std::string_view header : headers) answer.add_header(header);
    return answer;
}

TEST(HttpAnswer, content_range) {
    const auto range = parse_content_range("bytes 5-9/20");
    ASSERT_TRUE(range);
    EXPECT_EQ(range->first, 5U);
    EXPECT_EQ(range->last, 9U);
    EXPECT_EQ(range->total, 20U);
    EXPECT_FALSE(range->unsatisfied);
    EXPECT_EQ(parse_content_range(" Bytes 0-0/*")->total, std::nullopt);
    EXPECT_TRUE(parse_content_range("bytes */0")->unsatisfied);
    for (const char* bad :
         {"", "bytes", "bytes 5-9", "bytes 9-5/20", "bytes 5-20/20", "bytes -5/20", "bytes 5-/20",
          "items 5-9/20", "bytes 5-9/", "bytes 5-9/x", "bytes */*", "bytes 0x5-9/20",
          "bytes 5-9/99999999999999999999", "bytes 18446744073709551615-1/2", "bytes +5-9/20"})
        EXPECT_FALSE(parse_content_range(bad)) << bad;
}

TEST(HttpAnswer, size_and_version) {
    const HttpAnswer part = answer_of(206, {"Content-Length: 5", "content-range: bytes 0-4/50",
                                            "ETag:  \"abc\" ", "X-Amz-Request-Id: 17"});
    EXPECT_EQ(part.total(), 50U);
    EXPECT_EQ(part.length, 5U);
    EXPECT_EQ(part.strong_tag(), "\"abc\"");
    EXPECT_EQ(part.request_id, "17");
    EXPECT_EQ(answer_of(200, {"Content-Length: 7"}).total(), 7U);
    EXPECT_EQ(answer_of(200, {}).total(), std::nullopt);
    EXPECT_EQ(answer_of(200, {"Content-Length: -7"}).total(), std::nullopt);
    EXPECT_EQ(answer_of(200, {"ETag: W/\"abc\""}).strong_tag(), "");
    EXPECT_EQ(answer_of(200, {"Last-Modified: Thu, 01 Jan 1970 00:00:10 GMT"}).modified,
              10'000'000'000);
    EXPECT_FALSE(answer_of(206, {"Content-Range: bytes x"}).range);
}

TEST(HttpAnswer, pauses) {
    EXPECT_EQ(answer_of(503, {}).pause(), std::nullopt);
    EXPECT_EQ(answer_of(503, {"Retry-After: 3"}).pause(), 3'000'000'000U);
    EXPECT_EQ(answer_of(503, {"Retry-After: soon"}).pause(), std::nullopt);
    EXPECT_EQ(answer_of(503, {"Retry-After: Thu, 01 Jan 1970 00:00:10 GMT"}).pause(), 0U);
    // More than there are nanoseconds.
    EXPECT_GT(answer_of(503, {"Retry-After: 9223372036854775807"}).pause(), uint64_t{1} << 62);
    char date[64];
    const std::time_t later = std::time(nullptr) + 100;
    std::strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", std::gmtime(&later));
    const auto pause = answer_of(429, {"Retry-After: " + std::string(date)}).pause();
    ASSERT_TRUE(pause);
    EXPECT_NEAR(static_cast<double>(*pause), 100e9, 10e9);
}

TEST(HttpAnswer, classes_of_statuses) {
    const auto code = [](int status) { return answer_of(status, {}).error().code(); };
    for (const int status : {401, 403, 407}) EXPECT_EQ(code(status), SHF_E_AUTH) << status;
    for (const int status : {400, 404, 410, 451, 501, 505})
        EXPECT_EQ(code(status), SHF_E_NET_PERMANENT) << status;
    for (const int status : {412, 416}) EXPECT_EQ(code(status), SHF_E_CHANGED) << status;
    for (const int status : {429, 503}) EXPECT_EQ(code(status), SHF_E_THROTTLED) << status;
    for (const int status : {408, 500, 502, 504, 522, 524})
        EXPECT_EQ(code(status), SHF_E_NET_TRANSIENT) << status;
}

TEST(HttpAddress, public_ones) {
    for (const char* address : {"8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "169.253.0.1",
                                "2001:4860:4860::8888", "::ffff:8.8.8.8"})
        EXPECT_TRUE(is_public_address(address)) << address;
    for (const char* address :
         {"127.0.0.1", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254",
          "100.64.0.1", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1%eth0", "fd00::1",
          "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "ff02::1", "", "name"})
        EXPECT_FALSE(is_public_address(address)) << address;
}

}  // namespace
}  // namespace shf
