// What opens a shard is found by the scheme of its URL, and a new scheme is one row.
#include "io/sources.h"
#include "core/error.h"
#include "core/options.h"
#include "temp_shards.h"
#include "url/scheme.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

using namespace shf;
using namespace shf::test;

namespace {

std::string shard;  // what the scheme "memory" serves under any name

std::unique_ptr<Source> open_memory(const std::string& url, const SourceContext& /*context*/) {
    if (url != "memory://shard") throw Error(SHF_E_IO, "nothing is there");
    return memory_source({reinterpret_cast<const uint8_t*>(shard.data()), shard.size()});
}

Identity stat_memory(const std::string& /*url*/, const SourceContext& /*context*/) {
    return {.size = shard.size(), .modified = 1, .tag = {}, .version = "etag"};
}

std::vector<std::string> list_memory(const std::string& prefix, const SourceContext& /*context*/) {
    const std::vector<std::string> objects = {
        "memory://a/1.tar", "memory://a/2.tar.gz", "memory://a/3.tgz",   "memory://a/4.zip",
        "memory://a/5.txt", "memory://a/*.tar",    "memory://a/b/6.tar", "memory://a/7.tar.json.x",
        "memory://a/tar",   "memory://c?/8.tar",
    };
    std::vector<std::string> found;
    for (const std::string& object : objects)
        if (object.starts_with(prefix)) found.push_back(object);
    return found;
}

constexpr Scheme memory_scheme{"memory", open_memory, stat_memory, list_memory};

std::vector<std::string> listed(std::vector<const char*> urls, bool expand = true) {
    Options options;
    options.expand = expand;
    const Cancel cancel;
    const ShardList list = Sources(options, cancel).list(urls);
    std::vector<std::string> all;
    for (uint64_t i = 0; i < list.size(); ++i) all.push_back(list.at(i));
    return all;
}

int32_t code_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.code();
    }
    return SHF_OK;
}

}  // namespace

TEST(Sources, schemes_are_told_from_paths) {
    const std::array<std::array<const char*, 2>, 16> cases = {{
        {"a.tar", ""},
        {"/a:b//c.tar", ""},
        {"a:b.tar", ""},
        {"c:/a.tar", ""},
        {"1x://a", ""},
        {"://a", ""},
        {"", ""},
        {"-", "-"},
        {"./-", ""},
        {"pipe:cat a", "pipe"},
        {"Pipe:cat a", ""},
        {"file:///a.tar", "file"},
        {"FILE:a.tar", "file"},
        {"file:", ""},
        {"S3://bucket/a.tar", "s3"},
        {"hdfs+x.y-z://a", "hdfs+x.y-z"},
    }};
    for (const auto& [url, scheme] : cases) {
        EXPECT_EQ(scheme_of(url), scheme) << url;
        EXPECT_EQ(is_local_path(url), *url != '\0' && *scheme == '\0') << url;
    }
    EXPECT_EQ(path_of("a:b.tar"), "a:b.tar");
    EXPECT_EQ(path_of("file:///a%20b"), "/a b");
}

TEST(Sources, a_file_is_the_same_before_and_after_it_is_opened) {
    const TempDirectory directory;
    directory.write("a.tar", shard_bytes(0, 3));
    const Options options;
    const Cancel cancel;
    const Sources sources(options, cancel);
    const Identity before = sources.stat(directory / "a.tar");
    EXPECT_EQ(before, sources.stat("file://" + directory / "a.tar"));
    EXPECT_EQ(before, sources.open(directory / "a.tar")->identity());
    EXPECT_EQ(before.size, shard_bytes(0, 3).size());
    directory.write("b.tar", shard_bytes(0, 3));
    EXPECT_NE(before, sources.stat(directory / "b.tar"));
    EXPECT_EQ(code_of([&] { (void)sources.stat(directory / "c.tar"); }), SHF_E_IO);
    EXPECT_EQ(code_of([&] { (void)sources.stat("pipe:cat"); }), SHF_E_UNSUPPORTED);
    EXPECT_EQ(code_of([&] { (void)sources.stat("-"); }), SHF_E_UNSUPPORTED);
    EXPECT_EQ(code_of([&] { (void)sources.stat("s3://a"); }), SHF_E_UNSUPPORTED);
    EXPECT_EQ(code_of([&] { (void)sources.open("s3://a"); }), SHF_E_UNSUPPORTED);
    EXPECT_EQ(code_of([&] { (void)sources.open(""); }), SHF_E_USAGE);
}

TEST(Sources, hints_change_nothing_that_is_read) {
    const TempDirectory directory;
    const std::string bytes = shard_bytes(0, 100);
    directory.write("a.tar", bytes);
    const Options options;
    const Cancel cancel;
    const auto source = Sources(options, cancel).open(directory / "a.tar");
    const std::vector<ByteRange> ranges = {
        {0, 512}, {bytes.size() - 1, 1}, {bytes.size(), 10}, {UINT64_MAX, UINT64_MAX}, {0, 0}};
    for (size_t count = 0; count <= ranges.size(); ++count)
        source->prefetch(std::span(ranges).first(count));
    std::vector<uint8_t> all(bytes.size());
    EXPECT_EQ(source->read(0, all), all.size());
    EXPECT_EQ(std::string(all.begin(), all.end()), bytes);
}

TEST(Sources, stores_are_listed) {
    Sources::add(memory_scheme);
    using List = std::vector<std::string>;
    EXPECT_EQ(listed({"memory://a/"}),
              (List{"memory://a/1.tar", "memory://a/2.tar.gz", "memory://a/3.tgz",
                    "memory://a/4.zip", "memory://a/*.tar", "memory://a/b/6.tar"}));
    EXPECT_EQ(listed({"memory://a/*.tar"}), (List{"memory://a/1.tar", "memory://a/*.tar"}));
    EXPECT_EQ(listed({"memory://a/[!2]*"}), (List{"memory://a/1.tar", "memory://a/3.tgz",
                                                  "memory://a/4.zip", "memory://a/*.tar"}));
    EXPECT_EQ(listed({"memory://a/{b,b}/"}), (List{"memory://a/b/6.tar", "memory://a/b/6.tar"}));
    EXPECT_EQ(listed({"memory://a/*/*.tar::memory://c\\?/"}),
              (List{"memory://a/b/6.tar", "memory://c?/8.tar"}));
    EXPECT_EQ(listed({"memory://a/\\*.tar"}), (List{"memory://a/*.tar"}));
    EXPECT_EQ(listed({"memory://a/"}, false), (List{"memory://a/"}));
    EXPECT_EQ(code_of([] { (void)listed({"memory://none/"}); }), SHF_E_NET_PERMANENT);
    EXPECT_EQ(code_of([] { (void)listed({"memory://a/*.TAR"}); }), SHF_E_NET_PERMANENT);
    // In a URL of the web these characters stand for themselves.
    EXPECT_EQ(listed({"https://host/a.tar?*=[1]"}), (List{"https://host/a.tar?*=[1]"}));
    EXPECT_EQ(listed({"https://host/{a,b}/"}), (List{"https://host/a/", "https://host/b/"}));
}

TEST(Sources, an_added_scheme_is_read_by_streams_and_archives) {
    shard = shard_bytes(7, 20);
    Sources::add(memory_scheme);
    Client client("memory://shard", {});
    EXPECT_EQ(client.keys().size(), 20U);
    EXPECT_EQ(client.code, SHF_END) << client.message();
    Client none("memory://other", {});
    EXPECT_FALSE(none.next());
    EXPECT_EQ(none.code, SHF_E_IO) << none.message();

    shf_archive* archive = nullptr;
    ASSERT_EQ(shf_archive_open(&archive, "memory://shard", nullptr, nullptr), SHF_OK);
    EXPECT_EQ(shf_archive_member_count(archive), 20U);
    shf_archive_close(archive);

    const Options options;
    const Cancel cancel;
    EXPECT_EQ(Sources(options, cancel).stat("MEMORY://shard").version, "etag");
}
