// URLs, lists and pauses of the stores that have no signature.
#include "core/error.h"
#include "core/options.h"
#include "http/http_answer.h"
#include "store/ais_store.h"
#include "store/endpoint.h"
#include "store/hf_store.h"
#include "store/store_list.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shf {
namespace {

template <typename Call>
int32_t code_of(Call call) {
    try {
        call();
    } catch (const Error& error) {
        return error.code();
    }
    return SHF_OK;
}

TEST(Store, url_of_hugging_face) {
    const HfUrl url = parse_hf_url("hf://datasets/owner/na.me@a%2Fb/x/y z.tar");
    EXPECT_EQ(url.repository, "datasets/owner/na.me");
    EXPECT_EQ(url.revision, "a/b");
    EXPECT_EQ(url.path, "x/y z.tar");
    EXPECT_EQ(hf_target(url), "/datasets/owner/na.me/resolve/a%2Fb/x/y%20z.tar");
    EXPECT_EQ(hf_target(parse_hf_url("hf://o/n/../a")), "/o/n/resolve/main/%2E%2E/a");
    for (const char* wrong : {"hf:", "hf://", "hf://o", "hf://o/", "hf://datasets/o", "hf://o/n@/x",
                              "hf://o/.n/x", "hf://o/n?/x", "hf://datasets/datasets"})
        EXPECT_EQ(code_of([&] { (void)parse_hf_url(wrong); }), SHF_E_USAGE) << wrong;
}

TEST(Store, link_to_the_next_page) {
    EXPECT_EQ(next_hf_page("", "https://h"), "");
    EXPECT_EQ(next_hf_page("<https://h/a?c=1>; rel=\"next\"", "https://h"), "/a?c=1");
    EXPECT_EQ(next_hf_page("<https://h/a>; rel=\"prev\", </b>; rel=\"next\"", "https://h"), "/b");
    EXPECT_EQ(next_hf_page("<https://h/a>; rel=\"prev\"", "https://h"), "");
    EXPECT_EQ(next_hf_page("<https://h/a", "https://h"), "");
    for (const char* other : {"https://h.evil/a", "http://h/a", "//evil/a"})
        EXPECT_EQ(code_of([&] {
                      (void)next_hf_page("<" + std::string(other) + ">; rel=\"next\"", "https://h");
                  }),
                  SHF_E_NET_PERMANENT)
            << other;
}

TEST(Store, url_of_aistore) {
    const AisUrl url = parse_ais_url("ais://bucket/a b.tar?archpath=in/x?.jpg");
    EXPECT_EQ(url.bucket, "bucket");
    EXPECT_EQ(url.name, "a b.tar");
    EXPECT_EQ(url.member, "in/x?.jpg");
    for (const char* wrong : {"ais:", "ais://", "ais:///a", "ais://b c/a", "ais://b/a?archpath="})
        EXPECT_EQ(code_of([&] { (void)parse_ais_url(wrong); }), SHF_E_USAGE) << wrong;
}

TEST(Store, lists_have_an_end) {
    const Options options;
    const auto list = [&](const std::function<StorePage(const std::string&)>& page) {
        return list_pages("a", "bucket", options, page);
    };
    using Keys = std::vector<std::string>;
    // Pages without keys are no end.
    EXPECT_EQ(list([](const std::string& next) {
                  if (next.empty()) return StorePage{.keys = {"ab"}, .next = "1"};
                  if (next == "1") return StorePage{.keys = {}, .next = "2"};
                  return StorePage{.keys = {"aa"}, .next = {}};
              }),
              (Keys{"aa", "ab"}));
    int pages = 0;
    const auto endless = [&](const std::string&) {
        return StorePage{.keys = {}, .next = std::to_string(++pages)};
    };
    EXPECT_EQ(code_of([&] { (void)list(endless); }), SHF_E_NET_PERMANENT);
    const auto circle = [&](const std::string& next) {
        return StorePage{.keys = {"a" + next}, .next = next == "1" ? "2" : "1"};
    };
    EXPECT_EQ(code_of([&] { (void)list(circle); }), SHF_E_NET_PERMANENT);
    for (const Keys& keys : {Keys{"b"}, Keys{"ab", "ab"}})
        EXPECT_EQ(
            code_of([&] {
                (void)list([&](const std::string&) { return StorePage{.keys = keys, .next = {}}; });
            }),
            SHF_E_NET_PERMANENT);
    Options few;
    few.set("max_shards", "1");
    EXPECT_EQ(code_of([&] {
                  (void)list_pages("", "bucket", few, [](const std::string&) {
                      return StorePage{.keys = {"a", "b"}, .next = {}};
                  });
              }),
              SHF_E_LIMIT);
}

TEST(Store, endpoints) {
    EXPECT_EQ(checked_endpoint("https://h:443/", "X", "help"), "https://h");
    EXPECT_EQ(checked_endpoint("http://h:80/p//", "X", "help"), "http://h/p");
    for (const char* wrong :
         {"", "h", "ftp://h", "http://", "http://u@h", "http://h?q", "http://h h"})
        EXPECT_EQ(code_of([&] { (void)checked_endpoint(wrong, "X", "help"); }), SHF_E_USAGE)
            << wrong;
}

TEST(Store, pause_of_a_limit) {
    const auto pause = [](const char* text) {
        HttpAnswer answer;
        answer.add_header("RateLimit: " + std::string(text));
        return answer.pause();
    };
    EXPECT_EQ(pause("\"resolvers\";r=0;t=55"), 55'000'000'000U);
    EXPECT_EQ(pause("\"api\"; r=0; t=2"), 2'000'000'000U);
    for (const char* none : {"", "x", "\"api\";r=1;t=2", "\"api\";r=0", "\"api\";t=2", "r=0;t=-1"})
        EXPECT_EQ(pause(none), std::nullopt) << none;
    EXPECT_EQ(pause("r=0;t=9223372036854775807"), 18'446'744'073'000'000'000U);
}

}  // namespace
}  // namespace shf
