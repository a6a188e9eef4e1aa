// The index that a complete pass of a stream leaves behind (write_index), and one that counts more
// samples than a pass finds.
#include "temp_shards.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

using namespace shf::test;

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

class EngineIndex : public testing::Test {
  protected:
    // The index that walking the shard alone makes.
    std::string built(const std::string& name) {
        const std::string path = directory / name;
        shf_error error;
        EXPECT_EQ(shf_index_build(path.c_str(), nullptr, &error), SHF_OK) << error.message;
        const std::string bytes = read_file(path + ".sfidx");
        std::filesystem::remove(path + ".sfidx");
        return bytes;
    }
    [[nodiscard]] std::string left_behind(const std::string& name) const {
        return read_file(directory / (name + ".sfidx"));
    }
    [[nodiscard]] bool exists(const std::string& name) const {
        return std::filesystem::exists(directory / (name + ".sfidx"));
    }

    const Watchdog watchdog{300};
    const TempDirectory directory;
};

TEST_F(EngineIndex, is_the_one_that_a_walk_makes) {
    write_shards(directory, {3, 500, 20}, 700);
    const std::string path(150, 'd');
    directory.write("names.tar", gnu_name(path + "/a.JPG") +
                                     member("x", "long name", Carrier::gnu) +
                                     member("__skipped__", "none") + member("b.txt", "") +
                                     member("b.cls", std::string(70000, 'c')) +
                                     member("c.txt", "end") + end_marker());
    std::vector<std::string> names{"000.tar", "001.tar", "002.tar", "names.tar"}, walked, urls;
    for (const std::string& name : names) {
        walked.push_back(built(name));
        urls.push_back(directory / name);
    }
    for (const char* shuffle : {"0", "50"}) {
        Client client(urls, {{"write_index", "true"}, {"threads", "3"}, {"shuffle", shuffle}});
        (void)client.keys();
        ASSERT_EQ(client.code, SHF_END) << client.message();
        for (size_t i = 0; i < names.size(); ++i) {
            EXPECT_EQ(left_behind(names[i]), walked[i]) << names[i];
            std::filesystem::remove(directory / (names[i] + ".sfidx"));
        }
    }
}

TEST_F(EngineIndex, is_left_only_when_asked) {
    write_shards(directory, {10});
    Client client(directory / "000.tar", {});
    EXPECT_EQ(client.keys().size(), 10U);
    EXPECT_FALSE(exists("000.tar"));
}

TEST_F(EngineIndex, is_not_left_by_a_pass_that_was_not_complete) {
    write_shards(directory, {2000}, 5000);
    {
        Client client(directory / "000.tar", {{"write_index", "true"}, {"memory", "1MiB"}});
        EXPECT_EQ(client.keys(5).size(), 5U);
    }
    EXPECT_FALSE(exists("000.tar"));
    const std::string bytes = shard_bytes(0, 20, 700);
    directory.write("cut.tar", std::string_view(bytes).substr(0, bytes.size() - 2048));
    directory.write("twice.tar", member("a.txt", "a") + member("a.txt", "b") +
                                     member("b.txt", "b") + end_marker());
    for (const std::string name : {"cut.tar", "twice.tar"}) {
        Client client(directory / name, {{"write_index", "true"}, {"on_error", "skip_sample"}});
        (void)client.keys();
        EXPECT_EQ(client.code, SHF_END) << client.message();
        EXPECT_FALSE(exists(name)) << name;
    }
}

TEST_F(EngineIndex, that_cannot_be_saved_is_logged) {
    write_shards(directory, {10});
    directory.write("file", "");  // no folder can be made below it
    std::vector<std::string> log;
    Client client({directory / "000.tar"},
                  {{"write_index", "true"}, {"index_dir", directory / "file/below"}},
                  [&](shf_options* options) {
                      shf_options_set_log(
                          options, SHF_LOG_WARNING,
                          [](void* lines, int32_t, const char* line) {
                              static_cast<std::vector<std::string>*>(lines)->push_back(line);
                          },
                          &log);
                  });
    EXPECT_EQ(client.keys().size(), 10U);
    EXPECT_EQ(client.code, SHF_END) << client.message();
    ASSERT_EQ(log.size(), 1U);
    EXPECT_NE(log[0].find("no index is left behind"), std::string::npos) << log[0];
}

// The shard was written again in its middle, where no index looks, with one sample less: two of
// them have become one. Its size, its time and both of its ends are what they were.
TEST_F(EngineIndex, that_counts_more_samples_is_an_error) {
    const std::string path = write_shards(directory, {40}, 9000)[0];
    shf_error error = {};
    ASSERT_EQ(shf_index_build(path.c_str(), nullptr, &error), SHF_OK) << error.message;
    const auto time = std::filesystem::last_write_time(path);
    std::string bytes = read_file(path);
    const std::string whole = bytes, before = sample_key(0, 19), merged = sample_key(0, 20);
    const size_t at = bytes.find(merged + ".txt");
    std::string block = header({.name = before + ".two", .size = 9000});
    bytes.replace(at, block.size(), block);
    ASSERT_EQ(bytes.size(), whole.size());
    const auto put = [&](const std::string& text) {
        directory.write("000.tar", text);
        std::filesystem::last_write_time(path, time);
    };
    const Settings ways[] = {
        {},
        {{"even", "drop"}},
        {{"even", "pad"}},
        {{"limit", "1000"}},
        {{"shuffle", "7"}},
        {{"threads", "3"}, {"lanes", "1"}},
        {{"even", "drop"}, {"select_keys", "s000-0001*,s000-0002*"}},
    };
    for (const Settings& way : ways)
        for (const bool blocks : {false, true}) {
            put(whole);
            Client sound(path, way);
            const size_t samples = (blocks ? sound.block_keys() : sound.keys()).size();
            EXPECT_EQ(samples, way.size() == 2 && way[1].first == "select_keys" ? 20U : 40U);
            EXPECT_EQ(sound.code, SHF_END) << sound.message();
            put(bytes);
            Client client(path, way);
            (void)(blocks ? client.block_keys() : client.keys());
            EXPECT_EQ(client.code, SHF_E_FORMAT) << client.message();
            EXPECT_NE(client.message().find("the index counts"), std::string::npos)
                << client.message();
        }
    // No index is asked, or it is of another version, or damaged: nothing to compare with.
    Client without(path, {{"index", "memory"}});
    EXPECT_EQ(without.keys().size(), 39U);
    EXPECT_EQ(without.code, SHF_END) << without.message();
    directory.write("000.tar", bytes);
    Client later(path, {});
    EXPECT_EQ(later.keys().size(), 39U);
    EXPECT_EQ(later.code, SHF_END) << later.message();
    put(bytes);
    std::string index = left_behind("000.tar");
    index[index.size() / 2] ^= 1;
    directory.write("000.tar.sfidx", index);
    Client damaged(path, {});
    EXPECT_EQ(damaged.keys().size(), 39U);
    EXPECT_EQ(damaged.code, SHF_END) << damaged.message();
}

}  // namespace
