// Tokens of prepared shards, and the patterns by which those are found that have none.
#include "write/prepared_shard.h"

#include "core/cancel.h"
#include "core/error.h"
#include "core/options.h"
#include "io/source_context.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace shf {
namespace {

PreparedShard example() {
    PreparedFile file{.url = "s3://bucket/a b%\xff\n\u00e9.tar",
                      .size = 12345,
                      .upload = "0123456789abcdef0123456789abcdef",
                      .place = "up+load/=",
                      .parts = {"\"tag 1\" AAAA==", "", "%41"}};
    PreparedFile index = file;
    index.url += ".sfidx";
    index.parts.clear();
    return {.digest = "00", .file = std::move(file), .index = std::move(index)};
}

int32_t code_of(const std::string& token) {
    try {
        (void)parse_token(token);
        return SHF_OK;
    } catch (const Error& error) {
        return error.code();
    }
}

TEST(Tokens, come_back) {
    PreparedShard shard = example();
    const std::string token = token_of(shard);
    EXPECT_EQ(parse_token(token), shard);
    for (const char c : token) EXPECT_TRUE(c == '\n' || (c >= ' ' && c < 0x7f));
    shard.index.reset();
    EXPECT_EQ(parse_token(token_of(shard)), shard);
}

TEST(Tokens, that_were_damaged_are_refused) {
    const std::string token = token_of(example());
    for (size_t size = 0; size < token.size(); ++size)
        EXPECT_EQ(code_of(token.substr(0, size)), SHF_E_USAGE) << size;
    for (size_t at = 0; at < token.size(); ++at) {
        std::string damaged = token;
        damaged[at] = static_cast<char>(damaged[at] ^ 1);
        EXPECT_EQ(code_of(damaged), SHF_E_USAGE) << at;
        damaged = token;
        damaged.insert(at, "0");
        EXPECT_EQ(code_of(damaged), SHF_E_USAGE) << at;
    }
    EXPECT_EQ(code_of(token + "\n"), SHF_E_USAGE);
    EXPECT_EQ(code_of(std::string(most_token + 1, 'x')), SHF_E_USAGE);
}

TEST(Tokens, have_no_secrets_and_a_bound) {
    PreparedShard shard = example();
    shard.index.reset();
    for (const char* secret : {"https://a.blob.core.windows.net/c/b.tar?sig=hush",
                               "https://user:hush@a.blob.core.windows.net/c/b.tar"}) {
        shard.file.url = secret;
        try {
            (void)token_of(shard);
            ADD_FAILURE() << secret;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), SHF_E_USAGE);
            EXPECT_EQ(std::string(error.what()).find("hush"), std::string::npos);
        }
    }
    shard.file.url = "s3://bucket/a.tar";
    shard.file.parts.assign(50'000, std::string(32, 'x'));
    EXPECT_EQ(parse_token(token_of(shard)), shard);
    shard.file.parts.assign(50'000, std::string(100, 'x'));
    EXPECT_THROW((void)token_of(shard), Error);
}

TEST(Prepared_files, touch_nothing_else) {
    const std::string folder = testing::TempDir() + "prepared-files/";
    std::filesystem::create_directories(folder + "sub");
    Options options;
    const Cancel cancel;
    SourceUse use;
    for (const char* place : {"a.tar", "../x.partial", ".a/x.partial", ".a.tar", "x.partial", ""}) {
        const PreparedFile file{
            .url = folder + "sub/a.tar", .size = 0, .upload = "1", .place = place, .parts = {}};
        EXPECT_THROW(publish_prepared(file, {options, cancel, use}), Error) << place;
        EXPECT_THROW(discard_prepared(file, {options, cancel, use}), Error) << place;
    }
    std::filesystem::remove_all(folder);
}

TEST(Patterns, stand_for_names) {
    EXPECT_TRUE(is_of_pattern("a-000001-2.tar", "a-%06d-%d.tar"));
    EXPECT_TRUE(is_of_pattern("a-1234567.tar", "a-%06d.tar"));
    EXPECT_TRUE(is_of_pattern("5%d.tar", "5%%d.tar"));
    EXPECT_TRUE(is_of_pattern("", ""));
    for (const char* other :
         {"", "a-.tar", "a-x.tar", "a-1.tar.gz", "a-1.ta", "b-1.tar", "a-1-1.tar"})
        EXPECT_FALSE(is_of_pattern(other, "a-%06d.tar")) << other;
    EXPECT_EQ(start_of_pattern("a/5%%-%06d-%d.tar"), "a/5%-");
    EXPECT_EQ(start_of_pattern("plain%"), "plain%");
    EXPECT_EQ(start_of_pattern("%d"), "");
}

}  // namespace
}  // namespace shf
