// limit=N: an epoch is the first N samples of its order, whoever reads them, and what lies behind
// them stays unread.
#include "filter_encoders.h"
#include "resume_client.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using namespace shf::test;

class EngineLimit : public testing::Test {
  protected:
    void write(const std::vector<uint64_t>& counts) { urls = write_shards(directory, counts); }

    [[nodiscard]] std::vector<std::string> read(const Settings& settings) const {
        Client client(urls, settings);
        EXPECT_EQ(client.code, SHF_OK) << client.message();
        auto keys = client.keys(1'000'000);
        EXPECT_EQ(client.code, SHF_END) << client.message();
        return keys;
    }

    [[nodiscard]] std::string refusal(const Settings& settings) const {
        const Client client(urls, settings);
        EXPECT_EQ(client.code, SHF_E_USAGE);
        return client.message();
    }

    TempDirectory directory;
    std::vector<std::string> urls;
    const Watchdog watchdog{300};
};

std::vector<std::string> first(std::vector<std::string> keys, size_t count) {
    keys.resize(std::min(keys.size(), count));
    return keys;
}

TEST_F(EngineLimit, the_first_samples_of_the_order) {
    write({40, 33, 57, 90, 21, 25, 60, 38});
    const Settings ways[] = {
        {},
        {{"shuffle", "40"}},
        {{"lanes", "4"}, {"threads", "3"}},
        {{"lanes", "4"}, {"shuffle", "10"}, {"shuffle_shards", "true"}, {"seed", "3"}},
        {{"slice", "1::2"}},
        {{"resample", "true"}, {"seed", "9"}},
    };
    for (const Settings& way : ways) {
        const auto all = read(way);
        for (const uint64_t limit : {1U, 2U, 3U, 17U, 40U, 41U, 60U})
            EXPECT_EQ(read(way + Settings{{"limit", std::to_string(limit)}}), first(all, limit))
                << limit;
        EXPECT_EQ(read(way + Settings{{"limit", "1000000"}}), all);
    }
}

TEST_F(EngineLimit, the_same_samples_for_any_number_of_consumers) {
    write({40, 33, 57, 90, 21, 25, 60, 38});
    const Settings settings = {{"lanes", "4"}, {"shuffle", "9"}, {"limit", "42"}, {"epochs", "2"}};
    const auto all = read(settings);
    ASSERT_EQ(all.size(), 84U);
    for (const uint64_t consumers : {2U, 4U}) {
        std::vector<std::vector<std::string>> parts;
        for (uint64_t c = 0; c < consumers; ++c)
            parts.push_back(read(settings + Settings{{"world_size", std::to_string(consumers)},
                                                     {"rank", std::to_string(c)}}));
        std::vector<std::string> joined;
        for (size_t epoch = 0; epoch < 2; ++epoch)
            for (size_t t = 0; t < 42; ++t) {
                const auto& part = parts[t % consumers];
                joined.push_back(part.at(epoch * part.size() / 2 + t / consumers));
            }
        EXPECT_EQ(joined, all) << consumers;
    }
}

TEST_F(EngineLimit, each_epoch_begins_anew) {
    write({50, 50, 50});
    for (const Settings& way :
         {Settings{}, Settings{{"shuffle", "20"}}, Settings{{"shuffle_shards", "true"}}}) {
        std::vector<std::string> joined;
        for (const char* epoch : {"0", "1", "2", "3"}) {
            const auto one = read(way + Settings{{"limit", "70"}, {"epoch", epoch}});
            ASSERT_EQ(one.size(), 70U);
            joined.insert(joined.end(), one.begin(), one.end());
        }
        EXPECT_EQ(read(way + Settings{{"limit", "70"}, {"epochs", "4"}}), joined);
        Client endless(urls, way + Settings{{"limit", "70"}, {"epochs", "0"}});
        EXPECT_EQ(endless.keys(280), joined);
    }
}

TEST_F(EngineLimit, what_comes_after_it_is_not_read) {
    write({200});
    std::string bytes;
    for (uint64_t i = 0; i < 50; ++i) bytes += sample_members(1, i);
    directory.write("damaged.tar", bytes + std::string(512, 'x'));
    urls.push_back(directory / "damaged.tar");
    EXPECT_EQ(read({{"limit", "249"}}).size(), 249U);
    Client client(urls, {{"limit", "250"}});
    EXPECT_EQ(client.keys(1000).size(), 249U);
    EXPECT_EQ(client.code, SHF_E_FORMAT);
    // A pipe that would never end.
    urls = {"pipe:cat '" + (directory / "000.tar") + "'; sleep 1000"};
    EXPECT_EQ(read({{"limit", "199"}}).size(), 199U);
    EXPECT_EQ(read({{"limit", "150"}, {"epochs", "3"}}).size(), 450U);
}

TEST_F(EngineLimit, batches_and_blocks) {
    write({64, 64, 64});
    const auto all = read({{"limit", "100"}, {"epochs", "2"}});
    BatchClient batches(urls, {{"limit", "100"}, {"epochs", "2"}, {"batch", "30"}});
    std::vector<std::string> keys;
    while (batches.code == SHF_OK)
        for (const std::string& key : batch_of(batches)) keys.push_back(key);
    EXPECT_EQ(keys, all);
    for (const size_t most : {0U, 7U, 33U}) {
        Client blocks(urls, {{"limit", "100"}, {"epochs", "2"}});
        keys.clear();
        while (blocks.code == SHF_OK)
            for (const std::string& key : block_of(blocks, most)) keys.push_back(key);
        EXPECT_EQ(keys, all) << most;
    }
}

TEST_F(EngineLimit, a_state_at_the_limit_goes_on_with_the_next_epoch) {
    write({64, 64, 64});
    for (const char* shuffle : {"0", "50"}) {
        const Settings settings = {{"limit", "100"}, {"epochs", "3"}, {"shuffle", shuffle}};
        const auto all = read(settings);
        for (const size_t stop : {0U, 1U, 64U, 99U, 100U, 101U, 200U, 300U}) {
            Client before(urls, settings);
            auto keys = before.keys(stop);
            Client after(urls, settings);
            ASSERT_EQ(restore(after, save(before)), SHF_OK) << after.message();
            const auto rest = after.keys(1000);
            keys.insert(keys.end(), rest.begin(), rest.end());
            EXPECT_EQ(keys, all) << stop;
        }
        Client other(urls, {{"limit", "99"}, {"epochs", "3"}, {"shuffle", shuffle}});
        Client saved(urls, settings);
        EXPECT_EQ(restore(other, save(saved)), SHF_E_USAGE);
        EXPECT_NE(other.message().find("limit=100"), std::string::npos) << other.message();
    }
}

TEST_F(EngineLimit, what_is_refused) {
    write({10, 10, 10, 10});
    EXPECT_NE(refusal({{"limit", "3"}, {"world_size", "4"}, {"rank", "0"}})
                  .find("limit=3 for 4 consumers"),
              std::string::npos);
    EXPECT_NE(refusal({{"limit", "8"}, {"epoch_samples", "10"}}).find("limit with even"),
              std::string::npos);
    EXPECT_NE(refusal({{"limit", "8"}, {"even", "drop"}}).find("limit with even"),
              std::string::npos);
}

// More lanes than samples: some lanes give nothing in any epoch.
TEST_F(EngineLimit, fewer_than_lanes) {
    write({5, 5, 5, 5, 5, 5});
    EXPECT_EQ(read({{"limit", "4"}, {"lanes", "6"}, {"epochs", "3"}}).size(), 12U);
    Client endless(urls, {{"limit", "4"}, {"lanes", "6"}, {"epochs", "0"}, {"shuffle", "3"}});
    EXPECT_EQ(endless.keys(400).size(), 400U);
}

}  // namespace
