// Streams whose shards servers of a feed read: the same samples, order and states as those of a
// stream that reads them itself, whatever becomes of the servers.
#include "feed_client.h"
#include "mix_client.h"
#include "resume_client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace shf::test;

class FeedTest : public testing::Test {
  protected:
    // Together larger than what a stream with little memory takes ahead.
    FeedTest() { write_shards(directory, {40, 17, 60, 1, 33, 25, 48, 9}, 6000); }

    [[nodiscard]] std::string url() const { return directory / "{000..007}.tar"; }
    [[nodiscard]] std::vector<std::string> local(const Settings& settings) const {
        Client client(url(), settings);
        auto keys = client.keys();
        EXPECT_EQ(client.code, SHF_END) << client.message();
        return keys;
    }

    TempDirectory directory;
    const Watchdog watchdog{120};
};

const Settings shuffled = {
    {"lanes", "4"}, {"shuffle", "20"}, {"shuffle_shards", "true"}, {"seed", "3"}, {"epochs", "2"}};

TEST_F(FeedTest, gives_the_samples_of_a_local_stream_in_their_order) {
    const Feed feed(url());
    for (const Settings& settings :
         {Settings{}, Settings{{"lanes", "3"}}, shuffled, Settings{{"limit", "50"}},
          Settings{{"lanes", "4"}, {"epochs", "3"}, {"shuffle_shards", "true"}},
          Settings{{"lanes", "2"}, {"epoch_samples", "100"}, {"epochs", "2"}},
          Settings{{"lanes", "4"}, {"resample", "true"}, {"epoch_samples", "90"}},
          Settings{{"lanes", "4"}, {"rank", "1"}, {"world_size", "2"}, {"shuffle", "9"}},
          Settings{{"slice", "1:10:2"}, {"lanes", "2"}},
          Settings{{"select_keys", "*-0000[1-5]"}}}) {
        Client client(feed.url(), settings);
        ASSERT_EQ(client.code, SHF_OK) << client.message();
        EXPECT_EQ(client.keys(), local(settings));
        EXPECT_EQ(client.code, SHF_END) << client.message();
    }
}

TEST_F(FeedTest, gives_blocks) {
    const Feed feed(url());
    for (const Settings& settings : {Settings{}, shuffled}) {
        Client client(feed.url(), settings);
        EXPECT_EQ(client.block_keys(16), local(settings));
        EXPECT_EQ(client.code, SHF_END) << client.message();
    }
}

TEST_F(FeedTest, gives_every_consumer_its_part) {
    const Feed one(url()), two(url());
    std::vector<std::string> all;
    for (const char* rank : {"0", "1"}) {
        Client client({one.url(), two.url()},
                      shuffled + Settings{{"rank", rank}, {"world_size", "2"}});
        const auto keys = client.keys();
        all.insert(all.end(), keys.begin(), keys.end());
    }
    auto expected = local(shuffled);
    std::sort(all.begin(), all.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(all, expected);
}

TEST_F(FeedTest, sends_rows_that_are_decoded) {
    const Feed feed(url(), {{"decode", "txt:text"}, {"batch", "1"}});
    const Settings settings = shuffled + Settings{{"batch", "16"}};
    BatchClient fed(feed.url(), settings);
    ASSERT_EQ(fed.code, SHF_OK) << fed.message();
    BatchClient own(url(), settings + Settings{{"decode", "txt:text"}});
    for (;;) {
        const BatchHandle a = fed.next_batch(), b = own.next_batch();
        ASSERT_EQ(fed.code, own.code) << fed.message();
        if (!a) break;
        ASSERT_EQ(shf_batch_row_count(a.get()), shf_batch_row_count(b.get()));
        for (size_t i = 0; i < shf_batch_row_count(a.get()); ++i)
            for (const char* name : {"txt", "__key__", "__url__"})
                EXPECT_EQ(text_of(column(a, name), i), text_of(column(b, name), i));
    }
    EXPECT_EQ(fed.code, SHF_END) << fed.message();
}

TEST_F(FeedTest, compresses_what_it_sends_for_those_who_ask) {
    uint64_t plain = 0;
    for (const char* compression : {"none", "lz4", "zstd"}) {
        // What the server was started with is not asked for.
        const Feed feed(url(), {{"feed_compression", "lz4"}});
        Client client(feed.url(), shuffled + Settings{{"feed_compression", compression}});
        const auto keys = client.keys(100);
        Client resumed(feed.url(), shuffled + Settings{{"feed_compression", compression}});
        Client own(url(), shuffled);
        ASSERT_EQ(restore(resumed, save(client)), SHF_OK) << resumed.message();
        ASSERT_EQ(restore(own, save(client)), SHF_OK) << own.message();
        EXPECT_EQ(resumed.keys(), own.keys()) << compression;
        EXPECT_EQ(resumed.code, SHF_END) << resumed.message();
        const uint64_t bytes = feed.count(SHF_FEED_BYTES) / feed.count(SHF_FEED_SAMPLES);
        if (plain == 0) plain = bytes;
        EXPECT_GT(plain, 6000U);
        EXPECT_TRUE(compression == std::string("none") || bytes < plain / 4) << compression;
    }
    const Feed rows(url(), {{"decode", "txt:text"}, {"batch", "1"}});
    BatchClient fed(rows.url(), shuffled + Settings{{"batch", "16"}, {"feed_compression", "zstd"}});
    BatchClient own(url(), shuffled + Settings{{"batch", "16"}, {"decode", "txt:text"}});
    for (;;) {
        const BatchHandle a = fed.next_batch(), b = own.next_batch();
        ASSERT_EQ(fed.code, own.code) << fed.message();
        if (!a) break;
        for (size_t i = 0; i < shf_batch_row_count(b.get()); ++i)
            EXPECT_EQ(text_of(column(a, "txt"), i), text_of(column(b, "txt"), i));
    }
    EXPECT_LT(rows.count(SHF_FEED_BYTES), 466U * 6000 / 4);
}

TEST_F(FeedTest, states_are_those_of_local_streams) {
    const Feed feed(url());
    const auto all = local(shuffled);
    for (const size_t taken : {size_t{0}, size_t{1}, size_t{57}, size_t{233}, size_t{400}}) {
        Client begun(feed.url(), shuffled), own(url(), shuffled);
        ASSERT_EQ(begun.keys(taken).size(), taken);
        ASSERT_EQ(own.keys(taken).size(), taken);
        const std::vector<std::string> rest(all.begin() + static_cast<ptrdiff_t>(taken), all.end());
        // Saved by either, resumed by either.
        for (const State& state : {save(begun), save(own)})
            for (const std::string& where : {feed.url(), url()}) {
                Client resumed(where, shuffled);
                ASSERT_EQ(restore(resumed, state), SHF_OK) << resumed.message();
                EXPECT_EQ(resumed.keys(), rest) << taken;
                EXPECT_EQ(resumed.code, SHF_END) << resumed.message();
            }
    }
}

TEST_F(FeedTest, another_server_continues_when_one_ends) {
    const auto all = local(shuffled);
    for (const bool drained : {false, true}) {
        Feed one(url()), two(url());
        Client client({one.url(), two.url()},
                      shuffled + Settings{{"feed_timeout", "2s"}, {"memory", "1MiB"}});
        std::vector<std::string> keys = client.keys(100);
        drained ? one.drain() : one.stop();
        const auto rest = client.keys();
        keys.insert(keys.end(), rest.begin(), rest.end());
        EXPECT_EQ(keys, all) << drained;
        EXPECT_EQ(client.code, SHF_END) << client.message();
    }
}

TEST_F(FeedTest, a_server_that_is_started_again_continues) {
    auto feed = std::make_unique<Feed>(url());
    const std::string address = feed->url();
    Client client(address, shuffled + Settings{{"memory", "1MiB"}});
    std::vector<std::string> keys = client.keys(70);
    feed->stop();
    feed = std::make_unique<Feed>(url(), Settings{}, "tcp" + address.substr(4));
    const auto rest = client.keys();
    keys.insert(keys.end(), rest.begin(), rest.end());
    EXPECT_EQ(keys, local(shuffled));
    EXPECT_EQ(client.code, SHF_END) << client.message();
    EXPECT_GT(feed->count(SHF_FEED_SAMPLES), 0U);
}

TEST_F(FeedTest, a_server_that_joins_takes_lanes_over) {
    const Feed one(url());
    std::string address;
    {
        const Feed later(url());
        address = later.url();
    }
    Client client({one.url(), address},
                  shuffled + Settings{{"feed_timeout", "1s"}, {"memory", "1MiB"}});
    std::vector<std::string> keys = client.keys(20);
    const Feed two(url(), {}, "tcp" + address.substr(4));
    for (int i = 0; i < 500 && two.count(SHF_FEED_LANES) == 0; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_GT(two.count(SHF_FEED_LANES), 0U);
    const auto rest = client.keys();
    keys.insert(keys.end(), rest.begin(), rest.end());
    EXPECT_EQ(keys, local(shuffled));
}

TEST_F(FeedTest, faults_come_where_they_are) {
    std::string bad = shard_bytes(1, 30);
    bad.resize(bad.size() / 2);  // it is cut
    directory.write("001.tar", bad);
    const Feed feed(url());
    Client fed(feed.url(), {}), own(url(), {});
    EXPECT_EQ(fed.keys(), own.keys());
    EXPECT_EQ(fed.code, own.code);
    EXPECT_EQ(fed.message(), own.message());

    const Settings skips = {{"on_error", "skip_shard"}, {"lanes", "2"}};
    Client skipping(feed.url(), skips), local_one(url(), skips);
    EXPECT_EQ(skipping.keys(), local_one.keys());
    EXPECT_EQ(skipping.code, SHF_END) << skipping.message();
    EXPECT_EQ(skipping.stat(SHF_STAT_SKIPPED_SHARDS), 1U);
    EXPECT_EQ(skipping.skips(own.code), 1U);
    EXPECT_EQ(skipping.stat(SHF_STAT_SHARDS), local_one.stat(SHF_STAT_SHARDS));
}

TEST_F(FeedTest, a_field_that_cannot_be_decoded_is_a_fault_of_its_sample) {
    directory.write("003.tar", member("a.cls", "1") + member("b.cls", "x") + member("c.cls", "3") +
                                   end_marker());
    const std::string bad = directory / "003.tar";
    const Feed feed(bad, {{"decode", "cls:int"}, {"batch", "1"}});
    BatchClient failing(feed.url(), {{"batch", "2"}}),
        own(bad, {{"batch", "2"}, {"decode", "cls:int"}});
    while (failing.next_batch()) {
    }
    while (own.next_batch()) {
    }
    EXPECT_EQ(failing.code, own.code);
    EXPECT_EQ(failing.message(), own.message());

    const Settings skips = {{"on_error", "skip_sample"}, {"batch", "2"}};
    BatchClient client(feed.url(), skips);
    const BatchHandle batch = client.next_batch();
    ASSERT_TRUE(batch) << client.message();
    EXPECT_EQ(row_of<int64_t>(column(batch, "cls"), 0)[0], 1);
    EXPECT_EQ(row_of<int64_t>(column(batch, "cls"), 1)[0], 3);
    EXPECT_FALSE(client.next_batch());
    EXPECT_EQ(client.code, SHF_END) << client.message();
    EXPECT_EQ(client.stat(SHF_STAT_SKIPPED_SAMPLES), 1U);
}

TEST_F(FeedTest, skips_come_between_the_same_samples) {
    for (const char* name : {"000.tar", "002.tar", "004.tar", "005.tar"}) directory.write(name, "");
    const Feed feed(url());
    const Settings skips = {{"on_error", "skip_shard"}, {"max_skips", "2"}};
    Client fed(feed.url(), skips), own(url(), skips);
    EXPECT_EQ(fed.keys(), own.keys());
    EXPECT_EQ(fed.code, SHF_E_LIMIT);
    EXPECT_EQ(fed.message(), own.message());

    // Many without a sample between them.
    std::string many;
    for (int i = 0; i < 300; ++i) many += (i == 0 ? "" : "::") + (directory / "gone.tar");
    const Feed gone(many);
    Client none(gone.url(), {{"on_error", "skip_shard"}, {"max_skips", "100"}});
    EXPECT_TRUE(none.keys().empty());
    EXPECT_EQ(none.code, SHF_E_LIMIT) << none.message();
}

TEST_F(FeedTest, counts_what_readers_find) {
    directory.write("002.tar", member("__note__.txt", "x") + member("a.txt", "1") +
                                   member("README", "y") + end_marker());
    const Feed feed(url());
    const Settings settings = {{"lanes", "4"}, {"epochs", "2"}, {"select_keys", "*-0000[1-5],a"}};
    Client fed(feed.url(), settings), own(url(), settings);
    EXPECT_EQ(fed.keys(), own.keys());
    EXPECT_EQ(fed.code, SHF_END) << fed.message();
    EXPECT_GT(own.stat(SHF_STAT_IGNORED_MEMBERS), 0U);
    EXPECT_GT(own.stat(SHF_STAT_FILTERED_SAMPLES), 0U);
    for (const int32_t stat :
         {SHF_STAT_SAMPLES, SHF_STAT_SHARDS, SHF_STAT_IGNORED_MEMBERS, SHF_STAT_FILTERED_SAMPLES})
        EXPECT_EQ(fed.stat(stat), own.stat(stat)) << stat;
}

TEST_F(FeedTest, options_of_the_server_do_not_change_the_order) {
    const Feed feed(url(), {{"seed", "9"}, {"shuffle", "40"}, {"limit", "5"}, {"lanes", "4"}});
    Client client(feed.url(), {});
    EXPECT_EQ(client.keys(), local({}));
}

TEST_F(FeedTest, a_part_of_a_mix_without_end_begins_again) {
    const Feed feed(url());
    const auto mixed = [this](const std::string& first) {
        Parts parts = parts_of(part(first, {{"lanes", "2"}}), part(url()));
        MixClient client(parts, {1, 1}, {{"until", "forever"}});
        return client.keys(1000);
    };
    EXPECT_EQ(mixed(feed.url()), mixed(url()));
}

TEST_F(FeedTest, a_state_of_a_pass_without_shards_fails_again) {
    const Feed feed(directory / "gone-{0..3}.tar");
    const Settings skips = {{"on_error", "skip_shard"}, {"lanes", "2"}};
    Client client(feed.url(), skips);
    EXPECT_TRUE(client.keys().empty());
    EXPECT_EQ(client.code, SHF_E_IO) << client.message();
    const State state = save(client);
    Client again(feed.url(), skips);
    ASSERT_EQ(restore(again, state), SHF_OK) << again.message();
    EXPECT_TRUE(again.keys().empty());
    EXPECT_EQ(again.code, client.code) << again.message();
}

TEST_F(FeedTest, a_server_that_ends_before_the_first_sample_is_an_error) {
    auto feed = std::make_unique<Feed>(url());
    Client client(feed->url(), {{"feed_timeout", "200ms"}, {"feed_wait", "200ms"}});
    ASSERT_EQ(client.code, SHF_OK) << client.message();
    feed->stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    EXPECT_FALSE(client.next());
    EXPECT_EQ(client.code, SHF_E_NET_TRANSIENT) << client.message();
}

TEST_F(FeedTest, refuses_what_does_not_fit) {
    const Feed feed(url(), {{"feed_token", "secret"}});
    const Client stranger(feed.url(), {{"feed_token", "guess"}});
    EXPECT_EQ(stranger.code, SHF_E_AUTH);
    EXPECT_EQ(stranger.message().find("secret"), std::string::npos) << stranger.message();
    const Client friendly(feed.url(), {{"feed_token", "secret"}});
    EXPECT_EQ(friendly.code, SHF_OK) << friendly.message();

    const Feed rows(url(), {{"batch", "1"}, {"decode", "txt:text"}});
    Client samples(rows.url(), {});
    EXPECT_TRUE(samples.keys().empty());
    EXPECT_EQ(samples.code, SHF_E_USAGE) << samples.message();
    EXPECT_EQ(Client(rows.url(), {{"batch", "4"}, {"decode", "txt:bytes"}}).code, SHF_E_USAGE);
    EXPECT_EQ(Client(rows.url(), {{"batch", "4"}, {"decode", "txt:text"}}).code, SHF_OK);
    const Feed plain(url());
    EXPECT_EQ(Client(plain.url(), {{"feed_wait", "2s"}}).code, SHF_OK);
    EXPECT_EQ(Client({plain.url(), url()}, {}).code, SHF_E_USAGE);
    EXPECT_EQ(Client("feed://nowhere", {}).code, SHF_E_USAGE);
    Client shared(plain.url(), {{"rank", "0"}, {"world_size", "3"}, {"lanes", "4"}});
    EXPECT_TRUE(shared.keys().empty());
    EXPECT_EQ(shared.code, SHF_E_USAGE);
    EXPECT_NE(shared.message().find("lanes"), std::string::npos) << shared.message();
}

TEST_F(FeedTest, servers_that_feed_other_shards_are_refused) {
    const Feed one(url()), two(directory / "{000..006}.tar");
    // Without an end: the first server may have fed all before the other one is heard.
    Client client({one.url(), two.url()}, {{"epochs", "0"}});
    (void)client.keys();
    EXPECT_EQ(client.code, SHF_E_USAGE) << client.message();
    EXPECT_NE(client.message().find("other shards"), std::string::npos) << client.message();
}

TEST_F(FeedTest, waits_for_servers_as_long_as_feed_wait) {
    std::string address;
    {
        const Feed gone(url());
        address = gone.url();
    }
    const auto start = std::chrono::steady_clock::now();
    const Client nobody(address, {{"feed_wait", "300ms"}});
    EXPECT_EQ(nobody.code, SHF_E_NET_TRANSIENT) << nobody.message();
    EXPECT_NE(nobody.message().find(address), std::string::npos) << nobody.message();
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST_F(FeedTest, can_be_cancelled_and_closed_at_any_time) {
    const Feed feed(url());
    for (const size_t taken : {size_t{0}, size_t{1}, size_t{50}}) {
        Client client(feed.url(), {{"lanes", "4"}, {"epochs", "0"}});
        EXPECT_EQ(client.keys(taken).size(), taken);
        if (taken == 50) {
            shf_stream_cancel(client.stream);
            EXPECT_FALSE(client.next());
            EXPECT_EQ(client.code, SHF_E_CANCELLED);
        }
    }
    for (int i = 0; i < 500 && feed.count(SHF_FEED_LANES) > 0; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(feed.count(SHF_FEED_LANES), 0U);  // nothing is read for those who have gone
    EXPECT_EQ(feed.count(SHF_FEED_CONSUMERS), 0U);
}

TEST_F(FeedTest, answers_http_once) {
    const auto open = [this] {
        shf_feed* feed = nullptr;
        const std::string shards = url();
        const char* const urls[] = {shards.c_str()};
        EXPECT_EQ(shf_feed_open(&feed, urls, 1, "tcp://127.0.0.1:0", nullptr, nullptr), SHF_OK);
        return feed;
    };
    shf_feed* const feed = open();
    EXPECT_EQ(shf_feed_http_address(feed), nullptr);
    shf_error error = {};
    const int32_t code = shf_feed_http(feed, ":0", &error);
    if (code == SHF_E_UNSUPPORTED) {
        shf_feed_close(feed);
        GTEST_SKIP() << error.message;
    }
    EXPECT_EQ(code, SHF_OK) << error.message;
    const std::string address = shf_feed_http_address(feed);
    EXPECT_EQ(address.rfind("http://127.0.0.1:", 0), 0U) << address;
    EXPECT_EQ(shf_feed_http(feed, ":0", &error), SHF_E_USAGE);
    shf_feed* const second = open();
    EXPECT_EQ(shf_feed_http(second, nullptr, &error), SHF_E_USAGE);
    EXPECT_EQ(shf_feed_http(second, "9100", &error), SHF_E_USAGE);
    EXPECT_EQ(shf_feed_http(second, address.c_str() + 7, &error), SHF_E_IO);  // it is taken
    EXPECT_NE(std::string(error.message).find("in use"), std::string::npos) << error.message;
    shf_feed_close(feed);
    EXPECT_EQ(shf_feed_http(second, address.c_str() + 7, &error), SHF_OK) << error.message;
    shf_feed_close(second);
    EXPECT_EQ(shf_feed_http(nullptr, ":0", &error), SHF_E_USAGE);
    EXPECT_EQ(shf_feed_http_address(nullptr), nullptr);
}

TEST_F(FeedTest, a_slow_consumer_bounds_what_is_sent) {
    write_shards(directory, std::vector<uint64_t>(4, 200), 50'000);  // 40 MB
    const Feed feed(directory / "{000..003}.tar");
    Client client(feed.url(), {{"memory", "8MiB"}, {"lanes", "2"}});
    ASSERT_TRUE(client.next());
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    EXPECT_LT(feed.count(SHF_FEED_SAMPLES) * 50'000, 9U << 20);
    EXPECT_EQ(client.keys().size(), 799U);
    EXPECT_EQ(client.code, SHF_END) << client.message();
}

}  // namespace
