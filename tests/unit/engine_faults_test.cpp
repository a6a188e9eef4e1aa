// Damaged, empty and failing shards in a stream: on_error, its counters, and what comes before.
#include "filter_encoders.h"
#include "temp_shards.h"

#include <gtest/gtest.h>
#include <shardfeed.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace {

using namespace shf::test;

struct Messages {
    std::vector<std::string> texts;
    std::vector<int32_t> levels;
};

void note_message(void* ctx, int32_t level, const char* text) {
    auto* messages = static_cast<Messages*>(ctx);
    messages->levels.push_back(level);
    messages->texts.emplace_back(text);
}

class EngineFaults : public testing::Test {
  protected:
    // Shard s holds 20 samples; these say what is wrong with it.
    [[nodiscard]] std::string whole(uint64_t s) const { return shard_bytes(s, 20); }
    // Cut in sample `sample`.
    [[nodiscard]] std::string cut(uint64_t s, uint64_t sample) const {
        return whole(s).substr(0, sample * 1024 + 700);
    }
    // A wrong checksum in the header of sample `sample`. The sample before it is then not
    // delivered: whether it is whole is known only when the next member or the end was seen.
    [[nodiscard]] std::string broken_header(uint64_t s, uint64_t sample) const {
        std::string bytes = whole(s);
        bytes[sample * 1024] ^= 1;
        return bytes;
    }
    // Sample `sample` has a second field of the same name; the shard goes on.
    [[nodiscard]] std::string doubled(uint64_t s, uint64_t sample) const {
        std::string bytes = whole(s);
        bytes.insert((sample + 1) * 1024, sample_members(s, sample));
        return bytes;
    }

    static std::vector<std::string> first(uint64_t s, uint64_t count) {
        std::vector<std::string> keys;
        for (uint64_t i = 0; i < count; ++i) keys.push_back(sample_key(s, i));
        return keys;
    }
    static void append(std::vector<std::string>& to, const std::vector<std::string>& keys) {
        to.insert(to.end(), keys.begin(), keys.end());
    }
    [[nodiscard]] std::function<void(shf_options*)> logging() {
        return [this](shf_options* options) {
            shf_options_set_log(options, SHF_LOG_INFO, note_message, &log);
        };
    }

    const Watchdog watchdog{300};
    const TempDirectory directory;
    Messages log;
};

// The samples before a fault come first, then the error, and it stays.
TEST_F(EngineFaults, raise) {
    directory.write("a.tar", whole(0));
    directory.write("b.tar", cut(1, 7));
    directory.write("c.tar", whole(2));
    auto expected = first(0, 20);
    append(expected, first(1, 7));
    for (const char* threads : {"1", "2", "8"})
        for (const bool blocks : {false, true}) {
            Client client(directory / "{a,b,c}.tar", {{"threads", threads}});
            EXPECT_EQ(blocks ? client.block_keys() : client.keys(), expected);
            EXPECT_EQ(client.code, SHF_E_TRUNCATED);
            EXPECT_EQ(client.error.code, SHF_E_TRUNCATED);
            const std::string message = client.message();
            EXPECT_TRUE(message.starts_with((directory / "b.tar") + ": ")) << message;
            const shf_error before = client.error;
            for (int i = 0; i < 3; ++i) {
                EXPECT_EQ((i == 1 ? client.block_keys() : client.keys()).size(), 0U);
                EXPECT_EQ(client.code, SHF_E_TRUNCATED);
                EXPECT_EQ(client.message(), message);
                EXPECT_EQ(client.error.offset, before.offset);
            }
            EXPECT_EQ(client.stat(SHF_STAT_SAMPLES), 27U);
            EXPECT_EQ(client.stat(SHF_STAT_SHARDS), 1U);
            EXPECT_EQ(client.stat(SHF_STAT_SKIPPED_SHARDS), 0U);
        }
}

TEST_F(EngineFaults, raise_with_lanes_and_shuffle) {
    directory.write("a.tar", whole(0));
    directory.write("b.tar", broken_header(1, 7));
    Client lanes(directory / "{a,b}.tar", {{"lanes", "2"}});
    std::vector<std::string> expected;
    for (uint64_t i = 0; i < 7; ++i) {
        expected.push_back(sample_key(0, i));
        if (i < 6) expected.push_back(sample_key(1, i));
    }
    EXPECT_EQ(lanes.keys(), expected);
    EXPECT_EQ(lanes.code, SHF_E_FORMAT);
    EXPECT_EQ(lanes.error.offset, 7U * 1024);
    // What a shuffle buffer holds comes before the error, too.
    Client shuffled(directory / "{a,b}.tar", {{"shuffle", "10"}});
    auto keys = shuffled.keys();
    EXPECT_EQ(shuffled.code, SHF_E_FORMAT);
    std::sort(keys.begin(), keys.end());
    EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end());
    EXPECT_EQ(std::count(keys.begin(), keys.end(), "broken"), 0);
    EXPECT_EQ(keys.size(), 26U);
}

TEST_F(EngineFaults, skip_sample) {
    directory.write("a.tar", doubled(0, 5));
    directory.write("b.tar", cut(1, 7));
    directory.write("c.tar", whole(2));
    auto expected = first(0, 20);
    std::erase(expected, sample_key(0, 5));
    append(expected, first(1, 7));
    append(expected, first(2, 20));
    for (const char* threads : {"1", "3"})
        for (const bool blocks : {false, true}) {
            log = {};
            Client client({directory / "{a,b,c}.tar"},
                          {{"threads", threads}, {"on_error", "skip_sample"}}, logging());
            EXPECT_EQ(blocks ? client.block_keys() : client.keys(), expected);
            EXPECT_EQ(client.code, SHF_END) << client.message();
            EXPECT_EQ(client.stat(SHF_STAT_SAMPLES), expected.size());
            EXPECT_EQ(client.stat(SHF_STAT_SKIPPED_SAMPLES), 1U);
            EXPECT_EQ(client.stat(SHF_STAT_SKIPPED_SHARDS), 1U);
            EXPECT_EQ(client.stat(SHF_STAT_SHARDS), 2U);
            EXPECT_EQ(client.skips(SHF_E_AMBIGUOUS), 1U);
            EXPECT_EQ(client.skips(SHF_E_TRUNCATED), 1U);
            EXPECT_EQ(client.skips(SHF_E_FORMAT), 0U);
            ASSERT_EQ(log.texts.size(), 2U);
            EXPECT_EQ(log.levels, (std::vector<int32_t>{SHF_LOG_WARNING, SHF_LOG_WARNING}));
            EXPECT_NE(log.texts[0].find("a.tar"), std::string::npos) << log.texts[0];
            EXPECT_NE(log.texts[0].find(sample_key(0, 5) + ".txt"), std::string::npos)
                << log.texts[0];
            EXPECT_NE(log.texts[0].find("AMBIGUOUS"), std::string::npos) << log.texts[0];
            EXPECT_NE(log.texts[1].find("b.tar"), std::string::npos) << log.texts[1];
            EXPECT_NE(log.texts[1].find("TRUNCATED"), std::string::npos) << log.texts[1];
        }
}

TEST_F(EngineFaults, skip_shard) {
    directory.write("a.tar", doubled(0, 5));
    directory.write("b.tar", broken_header(1, 7));
    directory.write("c.tar", whole(2));
    directory.write("e.tar", std::string());
    auto expected = first(0, 5);
    append(expected, first(1, 6));
    append(expected, first(2, 20));
    Client client({directory / "{a,b,c,d,e}.tar"}, {{"on_error", "skip_shard"}},
                  logging());  // d is absent
    EXPECT_EQ(client.keys(), expected);
    EXPECT_EQ(client.code, SHF_END) << client.message();
    EXPECT_EQ(client.stat(SHF_STAT_SKIPPED_SAMPLES), 0U);
    EXPECT_EQ(client.stat(SHF_STAT_SKIPPED_SHARDS), 4U);
    EXPECT_EQ(client.stat(SHF_STAT_SHARDS), 1U);
    EXPECT_EQ(client.skips(SHF_E_AMBIGUOUS), 1U);
    EXPECT_EQ(client.skips(SHF_E_FORMAT), 1U);
    EXPECT_EQ(client.skips(SHF_E_IO), 1U);
    EXPECT_EQ(client.skips(SHF_E_TRUNCATED), 1U);
    EXPECT_EQ(log.texts.size(), 4U);
}

// Delivered and skipped samples are all samples, however many faults there are.
TEST_F(EngineFaults, delivered_and_skipped_are_all) {
    uint64_t total = 0, bad = 0;
    for (uint64_t s = 0; s < 12; ++s) {
        std::string bytes;
        for (uint64_t i = 0; i < 50; ++i) {
            bytes += sample_members(s, i);
            if ((s * 31 + i * 17) % 7 == 0) {
                bytes += sample_members(s, i);
                ++bad;
            }
            ++total;
        }
        directory.write(std::to_string(s) + ".tar", bytes + end_marker());
    }
    for (const char* shuffle : {"0", "25"})
        for (const char* lanes : {"1", "4"}) {
            Client client(directory / "{0..11}.tar", {{"on_error", "skip_sample"},
                                                      {"lanes", lanes},
                                                      {"shuffle", shuffle},
                                                      {"threads", "4"}});
            const auto keys = client.keys();
            EXPECT_EQ(client.code, SHF_END) << client.message();
            EXPECT_EQ(client.stat(SHF_STAT_SKIPPED_SAMPLES), bad);
            EXPECT_EQ(keys.size() + bad, total);
            EXPECT_EQ(client.stat(SHF_STAT_SAMPLES), keys.size());
            EXPECT_EQ(client.stat(SHF_STAT_SHARDS), 12U);
        }
}

TEST_F(EngineFaults, max_skips) {
    for (uint64_t s = 0; s < 6; ++s)
        directory.write(std::to_string(s) + ".tar",
                        s % 2 == 0 ? doubled(s, 3) : broken_header(s, 4));
    for (uint64_t most = 0; most <= 7; ++most) {
        Client client(directory / "{0..5}.tar",
                      {{"on_error", "skip_sample"}, {"max_skips", std::to_string(most)}});
        const auto keys = client.keys();
        if (most >= 6) {
            EXPECT_EQ(client.code, SHF_END) << client.message();
            EXPECT_EQ(keys.size(), 3U * 19 + 3 * 3);
            continue;
        }
        EXPECT_EQ(client.code, SHF_E_LIMIT);
        // Skip number most + 1 ends it; each shard gives three samples before its own.
        uint64_t expected = 0;
        for (uint64_t s = 0; s < most; ++s) expected += s % 2 == 0 ? 19 : 3;
        expected += 3;
        EXPECT_EQ(keys.size(), expected) << most;
        const std::string message = client.message();
        EXPECT_NE(message.find("max_skips=" + std::to_string(most)), std::string::npos) << message;
        EXPECT_NE(message.find(most % 2 == 0 ? "AMBIGUOUS" : "FORMAT"), std::string::npos)
            << message;
        EXPECT_NE(message.find(std::to_string(most) + ".tar"), std::string::npos) << message;
        EXPECT_EQ(client.keys().size(), 0U);
        EXPECT_EQ(client.message(), message);  // it repeats
    }
}

TEST_F(EngineFaults, empty_shards) {
    directory.write("a.tar", whole(0));
    directory.write("b.tar", end_marker());
    directory.write("c.tar", whole(2));
    auto expected = first(0, 20);
    Client strict(directory / "{a,b,c}.tar", {});
    EXPECT_EQ(strict.keys(), expected);
    EXPECT_EQ(strict.code, SHF_E_FORMAT);
    EXPECT_NE(strict.message().find("b.tar"), std::string::npos) << strict.message();
    EXPECT_NE(strict.message().find("allow_empty"), std::string::npos) << strict.message();
    append(expected, first(2, 20));
    Client lenient(directory / "{a,b,c}.tar", {{"allow_empty", "true"}});
    EXPECT_EQ(lenient.keys(), expected);
    EXPECT_EQ(lenient.code, SHF_END) << lenient.message();
    EXPECT_EQ(lenient.stat(SHF_STAT_EMPTY_SHARDS), 1U);
    EXPECT_EQ(lenient.stat(SHF_STAT_SHARDS), 3U);
    Client skipping(directory / "{a,b,c}.tar", {{"on_error", "skip_shard"}});
    EXPECT_EQ(skipping.keys(), expected);
    EXPECT_EQ(skipping.stat(SHF_STAT_SKIPPED_SHARDS), 1U);
}

// Nothing but empty shards: an end for a finite run, and no endless loop for an endless one.
TEST_F(EngineFaults, only_empty_shards) {
    directory.write("a.tar", end_marker());
    directory.write("b.tar", end_marker());
    for (const char* epochs : {"1", "3", "9"})
        for (const char* lanes : {"1", "2"}) {
            Client client(directory / "{a,b}.tar",
                          {{"allow_empty", "true"}, {"epochs", epochs}, {"lanes", lanes}});
            EXPECT_EQ(client.keys().size(), 0U);
            EXPECT_EQ(client.code, SHF_END) << epochs << " epochs: " << client.message();
        }
    Client endless(directory / "{a,b}.tar", {{"allow_empty", "true"}, {"epochs", "0"}});
    EXPECT_EQ(endless.keys().size(), 0U);
    EXPECT_EQ(endless.code, SHF_E_FORMAT);
    directory.write("cut.tar", cut(0, 0));
    Client damaged(directory / "cut.tar",
                   {{"on_error", "skip_shard"}, {"epochs", "0"}, {"max_skips", "1000000"}});
    EXPECT_EQ(damaged.keys().size(), 0U);
    EXPECT_NE(damaged.code, SHF_END);
}

// A lane whose shards are all empty beside one that has samples.
TEST_F(EngineFaults, an_empty_lane_in_an_endless_run) {
    directory.write("a.tar", end_marker());
    directory.write("b.tar", whole(1));
    Client client(directory / "{a,b}.tar",
                  {{"allow_empty", "true"}, {"epochs", "0"}, {"lanes", "2"}});
    EXPECT_EQ(client.keys(1000).size(), 1000U);
    EXPECT_EQ(client.code, SHF_OK);
}

TEST_F(EngineFaults, absent_file) {
    directory.write("a.tar", whole(0));
    Client client(directory / "{a,b}.tar", {});
    EXPECT_EQ(client.keys(), first(0, 20));
    EXPECT_EQ(client.code, SHF_E_IO);
    EXPECT_EQ(client.error.os_error, ENOENT);
    EXPECT_NE(client.message().find("b.tar"), std::string::npos);
}

// ---- Pipes --------------------------------------------------------------------------------------

// Whatever the child's status: the samples come, and the end only with status 0.
TEST_F(EngineFaults, every_exit_status) {
    directory.write("a.tar", whole(0));
    directory.write("b.tar", whole(1));
    std::string urls;
    const std::string before = directory / "a.tar", after = directory / "b.tar";
    for (int status = 0; status < 256; status += SANITIZED ? 17 : 1) {
        const std::string command = "pipe:cat " + before + "; exit " + std::to_string(status);
        Client client({command, after}, {{"threads", "2"}, {"expand", "false"}});
        auto expected = first(0, status == 0 ? 20 : 19);  // the last one waits for the proof
        if (status == 0) append(expected, first(1, 20));
        EXPECT_EQ(client.keys(), expected) << status;
        EXPECT_EQ(client.code, status == 0 ? SHF_END : SHF_E_CHILD) << status << client.message();
        if (status == 0) continue;
        EXPECT_NE(client.message().find("status " + std::to_string(status)), std::string::npos)
            << client.message();
        Client skipping({command, after}, {{"on_error", "skip_shard"}, {"expand", "false"}});
        append(expected, first(1, 20));
        EXPECT_EQ(skipping.keys(), expected);
        EXPECT_EQ(skipping.code, SHF_END);
        EXPECT_EQ(skipping.skips(SHF_E_CHILD), 1U);
    }
}

TEST_F(EngineFaults, child_that_a_signal_ends) {
    directory.write("a.tar", whole(0));
    for (const char* signal : {"TERM", "KILL", "SEGV", "PIPE"}) {
        Client client("pipe:cat " + (directory / "a.tar") + "; kill -" + signal + " $$", {});
        EXPECT_EQ(client.keys(), first(0, 19));
        EXPECT_EQ(client.code, SHF_E_CHILD) << signal;
    }
}

// The limit of a silent child is an error of the shard. It is not TIMEOUT, which means "call
// again".
TEST_F(EngineFaults, a_silent_child) {
    directory.write("a.tar", whole(0));
    Client client("pipe:cat " + (directory / "a.tar") + "; sleep 100",
                  {{"pipe_timeout", "200ms"}, {"timeout", "60s"}});
    EXPECT_EQ(client.keys(), first(0, 19));
    EXPECT_EQ(client.code, SHF_E_CHILD);
    EXPECT_NE(client.message().find("pipe_timeout"), std::string::npos) << client.message();
    const std::string message = client.message();
    EXPECT_EQ(client.keys().size(), 0U);
    EXPECT_EQ(client.message(), message);
}

TEST_F(EngineFaults, stderr_of_the_child_is_in_the_message) {
    Client client("pipe:echo 'no such bucket' >&2; exit 3", {});
    EXPECT_EQ(client.keys().size(), 0U);
    EXPECT_EQ(client.code, SHF_E_CHILD) << client.message();
    EXPECT_NE(client.message().find("no such bucket"), std::string::npos) << client.message();
}

// A small compressed shard is verified before any sample of it is delivered.
TEST_F(EngineFaults, nothing_comes_of_a_small_frame_that_fails_its_check) {
    for (const char* codec : {"gzip", "bzip2", "xz", "zstd", "lz4"}) {
        std::string bytes = compress(codec, whole(0));
        // bzip2: in the CRC of its only block. xz: in the block. Else in the last check.
        const size_t at = codec[0] == 'b' ? 10 : codec[0] == 'x' ? 100 : bytes.size() - 3;
        bytes[at] ^= 1;
        directory.write("a.tar", bytes);
        for (const char* threads : {"1", "2"}) {
            Client client(directory / "a.tar", {{"threads", threads}});
            EXPECT_EQ(client.keys().size(), 0U) << codec;
            EXPECT_EQ(client.code, SHF_E_INTEGRITY) << codec << client.message();
            EXPECT_EQ(client.stat(SHF_STAT_UNVERIFIED_SAMPLES), 0U);
        }
    }
}

// A larger one delivers before, and says so.
TEST_F(EngineFaults, samples_that_were_delivered_before_a_failed_check_are_counted) {
    // Of 1,024 bytes with their headers; the last one would be delivered with the end marker.
    const uint64_t samples = 17999;
    std::string damaged = gzip(shard_bytes(1, 100)) + gzip(shard_bytes(2, samples + 1), 1);
    // The first member is a whole tar, so it is read on only with concat.
    damaged[damaged.size() - 6] ^= 1;
    directory.write("a.tar.gz", damaged);
    directory.write("b.tar", whole(3));
    const auto concat = Settings{{"concat", "true"}};
    for (const char* threads : {"1", "2"}) {
        Client raising(directory / "{a.tar.gz,b.tar}", concat + Settings{{"threads", threads}});
        EXPECT_EQ(raising.keys().size(), 100 + samples);
        EXPECT_EQ(raising.code, SHF_E_INTEGRITY);
        EXPECT_NE(raising.message().find("; 17999 samples were delivered before the check"),
                  std::string::npos)
            << raising.message();
        EXPECT_EQ(raising.stat(SHF_STAT_UNVERIFIED_SAMPLES), samples);
        for (const char* on_error : {"skip_sample", "skip_shard"}) {
            log = {};
            Client skipping({directory / "{a.tar.gz,b.tar}"},
                            concat + Settings{{"threads", threads}, {"on_error", on_error}},
                            logging());
            EXPECT_EQ(skipping.keys().size(), 100 + samples + 20);
            EXPECT_EQ(skipping.code, SHF_END);
            EXPECT_EQ(skipping.stat(SHF_STAT_UNVERIFIED_SAMPLES), samples);
            EXPECT_EQ(skipping.stat(SHF_STAT_SKIPPED_SHARDS), 1U);
            ASSERT_EQ(log.texts.size(), 1U);
            EXPECT_NE(log.texts[0].find("17999 samples were delivered"), std::string::npos);
        }
    }
}

}  // namespace
