// ZIP shards in a stream: beside tar shards, with every number of threads and lanes, shuffled,
// damaged, and where they cannot be read.
#include "temp_shards.h"
#include "zip_encoders.h"

#include <algorithm>
#include <string>
#include <vector>

namespace shf::test {
namespace {

// Shard `shard` with the members that shard_bytes() puts into a tar.
Zip zip_shard(uint64_t shard, uint64_t samples, uint16_t method = zip_deflate, size_t size = 0) {
    Zip zip;
    for (uint64_t i = 0; i < samples; ++i) {
        const std::string key = sample_key(shard, i);
        std::string text = key;
        while (text.size() < size) text += key.substr(0, size - text.size());
        zip.entries.push_back(packed_entry(key + ".txt", method, text));
    }
    return zip;
}

class EngineZip : public testing::Test {
  protected:
    static std::vector<std::string> keys_of(uint64_t shard, uint64_t from, uint64_t to) {
        std::vector<std::string> keys;
        for (uint64_t i = from; i < to; ++i) keys.push_back(sample_key(shard, i));
        return keys;
    }
    static std::vector<std::string> joined(const std::vector<std::vector<std::string>>& lists) {
        std::vector<std::string> all;
        for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
        return all;
    }

    const Watchdog watchdog{300};
    const TempDirectory directory;
};

TEST_F(EngineZip, tar_and_zip_shards_in_one_list) {
    directory.write("a.zip", zip_shard(0, 50, zip_stored).bytes());
    directory.write("b.tar", shard_bytes(1, 50));
    directory.write("c.zip", zip_shard(2, 50, zip_deflate, 5000).bytes());
    directory.write("d.tar.gz", gzip(shard_bytes(3, 50)));
    directory.write("e.zip", zip_shard(4, 50, zip_zstd, 300).bytes());
    const std::vector<std::string> urls = {directory / "{a.zip,b.tar,c.zip}",
                                           directory / "d.tar.gz", directory / "e.zip"};
    const auto expected = joined({keys_of(0, 0, 50), keys_of(1, 0, 50), keys_of(2, 0, 50),
                                  keys_of(3, 0, 50), keys_of(4, 0, 50)});
    for (const char* threads : {"1", "2", "8"}) {
        Client client(urls, {{"threads", threads}});
        EXPECT_EQ(client.keys(), expected) << threads;
        EXPECT_EQ(client.code, SHF_END) << client.message();
        Client blocks(urls, {{"threads", threads}});
        EXPECT_EQ(blocks.block_keys(), expected) << threads;
    }
    // The same order as of tars with the same members, shuffled and interleaved too.
    write_shards(directory, {50, 50, 50, 50, 50});
    for (const Settings& order :
         {Settings{{"lanes", "3"}}, Settings{{"shuffle", "40"}},
          Settings{
              {"shuffle", "100"}, {"shuffle_shards", "true"}, {"seed", "7"}, {"epochs", "2"}}}) {
        Client mixed(urls, order);
        Client tars(directory / "{000..004}.tar", order);
        const auto keys = mixed.keys();
        EXPECT_EQ(keys, tars.keys());
        EXPECT_EQ(mixed.code, SHF_END) << mixed.message();
        EXPECT_GE(keys.size(), 250U);
    }
}

TEST_F(EngineZip, one_bad_entry_under_each_on_error) {
    Zip zip = zip_shard(1, 20);
    zip.entries[7].crc = 1;
    zip.entries[12].method = 9;
    directory.write("a.zip", zip_shard(0, 20).bytes());
    directory.write("b.zip", zip.bytes());
    directory.write("c.tar", shard_bytes(2, 20));
    const std::string url = directory / "{a.zip,b.zip,c.tar}";
    const auto before = joined({keys_of(0, 0, 20), keys_of(1, 0, 7)});
    for (const char* threads : {"1", "4"}) {
        Client raise(url, {{"threads", threads}});
        EXPECT_EQ(raise.keys(), before);
        EXPECT_EQ(raise.code, SHF_E_INTEGRITY) << raise.message();
        EXPECT_NE(raise.message().find("b.zip"), std::string::npos) << raise.message();
        EXPECT_NE(raise.message().find(sample_key(1, 7)), std::string::npos) << raise.message();

        Client sample(url, {{"threads", threads}, {"on_error", "skip_sample"}});
        EXPECT_EQ(sample.keys(),
                  joined({before, keys_of(1, 8, 12), keys_of(1, 13, 20), keys_of(2, 0, 20)}));
        EXPECT_EQ(sample.code, SHF_END) << sample.message();
        EXPECT_EQ(sample.skips(SHF_E_INTEGRITY), 1U);
        EXPECT_EQ(sample.skips(SHF_E_UNSUPPORTED), 1U);

        Client shard(url, {{"threads", threads}, {"on_error", "skip_shard"}});
        EXPECT_EQ(shard.keys(), joined({before, keys_of(2, 0, 20)}));
        EXPECT_EQ(shard.code, SHF_END) << shard.message();
        EXPECT_EQ(shard.skips(SHF_E_INTEGRITY), 1U);
        EXPECT_EQ(shard.skips(SHF_E_UNSUPPORTED), 0U);
    }
}

TEST_F(EngineZip, a_damaged_directory_is_the_shard) {
    const std::string whole = zip_shard(0, 20).bytes();
    directory.write("a.zip", whole.substr(0, whole.size() - 30));
    directory.write("b.tar", shard_bytes(1, 20));
    const std::string url = directory / "{a.zip,b.tar}";
    Client raise(url, {});
    EXPECT_EQ(raise.keys(), std::vector<std::string>());
    EXPECT_EQ(raise.code, SHF_E_TRUNCATED) << raise.message();
    for (const char* on_error : {"skip_sample", "skip_shard"}) {
        Client skip(url, {{"on_error", on_error}});
        EXPECT_EQ(skip.keys(), keys_of(1, 0, 20));
        EXPECT_EQ(skip.code, SHF_END) << skip.message();
        EXPECT_EQ(skip.skips(SHF_E_TRUNCATED), 1U);
    }
}

TEST_F(EngineZip, pipes_and_compressed_files_are_unsupported) {
    const std::string bytes = zip_shard(0, 5).bytes();
    directory.write("a.zip", bytes);
    directory.write("a.zip.gz", gzip(bytes));
    for (const std::string& url :
         {"pipe:cat '" + directory / "a.zip" + "'", directory / "a.zip.gz"}) {
        Client client(url, {});
        EXPECT_EQ(client.keys(), std::vector<std::string>()) << url;
        EXPECT_EQ(client.code, SHF_E_UNSUPPORTED) << client.message();
        EXPECT_NE(client.message().find("help"), std::string::npos) << client.message();
        EXPECT_NE(client.message().find("ZIP"), std::string::npos) << client.message();
    }
    // An archive takes a pipe into memory, and its directory then is within reach.
    const std::string pipe = "pipe:cat '" + directory / "a.zip" + "'";
    shf_archive* archive = nullptr;
    shf_error error;
    ASSERT_EQ(shf_archive_open(&archive, pipe.c_str(), nullptr, &error), SHF_OK) << error.message;
    EXPECT_EQ(shf_archive_member_count(archive), 5U);
    shf_archive_close(archive);
}

TEST_F(EngineZip, other_contents_under_the_suffix) {
    directory.write("junk.zip", noise(5000));
    directory.write("empty.zip", "");
    directory.write("nothing.zip", Zip().bytes());
    directory.write("tar.zip", shard_bytes(0, 5));
    const auto code = [&](const char* name) {
        Client client(directory / name, {});
        client.keys();
        return client.code;
    };
    EXPECT_EQ(code("junk.zip"), SHF_E_FORMAT);
    EXPECT_EQ(code("empty.zip"), SHF_E_TRUNCATED);
    EXPECT_EQ(code("nothing.zip"), SHF_E_FORMAT);
    EXPECT_EQ(code("tar.zip"), SHF_END);
}

TEST_F(EngineZip, switches) {
    Zip zip = zip_shard(0, 5);
    zip.prefix = "#!/bin/sh\n";
    zip.after = "junk";
    directory.write("a.zip", zip.bytes());
    Client refused(directory / "a.zip", {});
    EXPECT_EQ(refused.keys(), std::vector<std::string>());
    EXPECT_EQ(refused.code, SHF_E_FORMAT) << refused.message();
    Client allowed(directory / "a.zip", {{"zip_prefix", "allow"}, {"trailing", "ignore"}});
    EXPECT_EQ(allowed.keys(), keys_of(0, 0, 5)) << allowed.message();
    // With data before ZIP files allowed, tars are still tars.
    directory.write("b.tar", shard_bytes(1, 5));
    directory.write("c.tar.gz", gzip(shard_bytes(2, 5)));
    Client tars(directory / "{b.tar,c.tar.gz}", {{"zip_prefix", "allow"}});
    EXPECT_EQ(tars.keys(), joined({keys_of(1, 0, 5), keys_of(2, 0, 5)})) << tars.message();
}

TEST_F(EngineZip, large_deflated_entries_stay_in_bounds) {
    constexpr uint64_t MiB = 1 << 20;
    for (uint64_t s = 0; s < 3; ++s) {
        Zip zip;
        for (uint64_t i = 0; i < 3; ++i)
            zip.entries.push_back(packed_entry(sample_key(s, i) + ".txt", zip_deflate,
                                               sample_key(s, i) + noise(12 * MiB)));
        directory.write(std::to_string(s) + ".zip", zip.bytes());
    }
    for (const Settings& order :
         {Settings{}, Settings{{"threads", "4"}}, Settings{{"lanes", "3"}}}) {
        Client client(directory / "{0..2}.zip", order + Settings{{"memory", "32MiB"}});
        EXPECT_EQ(client.keys().size(), 9U);
        EXPECT_EQ(client.code, SHF_END) << client.message();
        EXPECT_LE(client.stat(SHF_STAT_MEMORY_PEAK), (32 + 32) * MiB);
    }
    Client small(directory / "{0..2}.zip", {{"memory", "16MiB"}});
    EXPECT_EQ(small.keys(), std::vector<std::string>());
    EXPECT_EQ(small.code, SHF_E_LIMIT) << small.message();
}

// What a sample holds may be kept after the stream and its shard are gone.
TEST_F(EngineZip, kept_samples_stay_whole) {
    directory.write("a.zip", zip_shard(0, 200, zip_deflate, 3000).bytes());
    std::vector<SampleHandle> kept;
    {
        Client client(directory / "a.zip", {{"shuffle", "50"}});
        while (SampleHandle sample = client.next()) kept.push_back(std::move(sample));
        EXPECT_EQ(client.code, SHF_END) << client.message();
    }
    ASSERT_EQ(kept.size(), 200U);
    for (const SampleHandle& sample : kept) EXPECT_TRUE(is_whole(sample.get()));
}

}  // namespace
}  // namespace shf::test
