// Mixes with epoch_samples: epochs of a given length over parts that begin again, the same number
// of samples for all ranks, and states that keep what is left.
#include "mix_client.h"
#include "order/state_encoding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace shf;
using namespace shf::test;

// Two data sets: shards 000 to 003 with 20 samples each, 004 to 005 with 5.
class EngineMixEpochs : public testing::Test {
  protected:
    EngineMixEpochs() { write_shards(directory, {20, 20, 20, 20, 5, 5}); }

    [[nodiscard]] Parts parts(const Settings& settings = {}) const {
        return parts_of(part(directory / "{000..003}.tar", settings + Settings{{"shuffle", "7"}}),
                        part(directory / "{004..005}.tar", settings));
    }
    [[nodiscard]] std::unique_ptr<MixClient> open(const Settings& mixed,
                                                  const Settings& each = {}) const {
        return std::make_unique<MixClient>(parts(each), std::vector<double>{1, 2},
                                           Settings{{"until", "forever"}} + mixed);
    }
    // Of one of `ranks` with two lanes.
    [[nodiscard]] std::unique_ptr<MixClient> open_rank(const Settings& mixed, uint64_t rank,
                                                       uint64_t ranks) const {
        return open(mixed, {{"lanes", "2"},
                            {"rank", std::to_string(rank)},
                            {"world_size", std::to_string(ranks)}});
    }

    TempDirectory directory;
};

uint64_t epoch_samples(const Client& client) {
    return shf_stream_stat(client.stream, SHF_STAT_EPOCH_SAMPLES);
}

TEST_F(EngineMixEpochs, end_after_their_samples) {
    const auto endless = open({})->keys(600);
    for (const uint64_t epochs : {1U, 3U}) {
        const auto mix = open({{"epoch_samples", "150"}, {"epochs", std::to_string(epochs)}});
        ASSERT_EQ(mix->code, SHF_OK) << mix->message();
        EXPECT_EQ(epoch_samples(*mix), 150U);
        const auto keys = mix->keys();
        EXPECT_EQ(mix->code, SHF_END) << mix->message();
        ASSERT_EQ(keys.size(), 150 * epochs);
        EXPECT_TRUE(std::equal(keys.begin(), keys.end(), endless.begin()));
    }
    EXPECT_EQ(open({{"epoch_samples", "150"}, {"epochs", "0"}})->keys(600), endless);

    const auto blocks = open({{"epoch_samples", "150"}});
    std::vector<std::string> keys;
    for (auto some = block_of(*blocks, 40); !some.empty(); some = block_of(*blocks, 40))
        keys.insert(keys.end(), some.begin(), some.end());
    EXPECT_EQ(blocks->code, SHF_END) << blocks->message();
    ASSERT_EQ(keys.size(), 150U);
    EXPECT_TRUE(std::equal(keys.begin(), keys.end(), endless.begin()));
}

TEST_F(EngineMixEpochs, give_every_rank_its_share) {
    for (uint64_t rank = 0; rank < 2; ++rank) {
        const auto mix = open_rank({{"epoch_samples", "151"}}, rank, 2);
        EXPECT_EQ(epoch_samples(*mix), 76 - rank);
        EXPECT_EQ(mix->keys().size(), 76 - rank);
        EXPECT_EQ(mix->code, SHF_END) << mix->message();
        const auto batches =
            open_rank({{"epoch_samples", "160"}, {"batch", "16"}, {"decode", "txt"}}, rank, 2);
        for (int i = 0; i < 5; ++i) EXPECT_EQ(batch_of(*batches).size(), 16U);
        EXPECT_TRUE(batch_of(*batches).empty());
        EXPECT_EQ(batches->code, SHF_END) << batches->message();
    }
}

TEST_F(EngineMixEpochs, end_as_parts_of_another_mix) {
    const auto inner = [&] {
        auto mix =
            std::make_unique<MixClient>(parts(), std::vector<double>{1, 2},
                                        Settings{{"until", "forever"}, {"epoch_samples", "30"}});
        EXPECT_EQ(mix->code, SHF_OK) << mix->message();
        return mix;
    };
    MixClient once(parts_of(inner(), part(directory / "004.tar")), {}, {});
    EXPECT_EQ(once.keys().size(), 35U);
    EXPECT_EQ(once.code, SHF_END) << once.message();
    MixClient again(parts_of(inner(), part(directory / "004.tar")), {}, {{"until", "forever"}});
    EXPECT_EQ(again.keys(500).size(), 500U);
}

TEST_F(EngineMixEpochs, a_stop_leaves_no_trace) {
    const Settings settings = {{"epoch_samples", "60"}, {"epochs", "2"}};
    const auto whole = open(settings)->keys();
    ASSERT_EQ(whole.size(), 120U);
    for (size_t stop = 0; stop <= whole.size(); stop += 7) {
        SCOPED_TRACE(stop);
        const auto client = open(settings);
        auto keys = client->keys(stop);
        const auto other = open(settings);
        ASSERT_EQ(restore(*other, save(*client)), SHF_OK) << other->message();
        const auto rest = other->keys();
        EXPECT_EQ(other->code, SHF_END) << other->message();
        keys.insert(keys.end(), rest.begin(), rest.end());
        EXPECT_EQ(keys, whole);
    }
}

// What two ranks have left of an epoch is dealt out to one, and back to two.
TEST_F(EngineMixEpochs, states_of_ranks_are_merged) {
    const Settings settings = {{"epoch_samples", "100"}};
    const auto first = open_rank(settings, 0, 2), second = open_rank(settings, 1, 2);
    EXPECT_EQ(first->keys(10).size() + second->keys(10).size(), 20U);
    const State one = save(*first), merged = merge({one, save(*second)});
    const auto alone = open_rank(settings, 0, 1);
    ASSERT_EQ(restore(*alone, merged), SHF_OK) << alone->message();
    EXPECT_EQ(alone->keys(30).size(), 30U);
    const State dealt = merge({save(*alone)});
    for (uint64_t rank = 0; rank < 2; ++rank) {
        const auto client = open_rank(settings, rank, 2);
        ASSERT_EQ(restore(*client, dealt), SHF_OK) << client->message();
        EXPECT_EQ(client->keys().size(), 25U);
        EXPECT_EQ(client->code, SHF_END) << client->message();
    }
    EXPECT_EQ(alone->keys().size(), 50U);
    // What is left cannot be known from the state of one rank alone.
    const auto refused = open_rank(settings, 0, 1);
    EXPECT_EQ(restore(*refused, one), SHF_E_USAGE);
    EXPECT_NE(refused->message().find("merge the states"), std::string::npos) << refused->message();
}

// As versions saved it before mixes had the option.
TEST_F(EngineMixEpochs, a_state_without_the_option_was_saved_without_it) {
    const auto saved = open({});
    const auto begun = saved->keys(40);
    StreamState state = decode_state(save(*saved));
    EXPECT_GT(std::erase_if(state.options,
                            [](const auto& option) { return option.first == "epoch_samples"; }),
              0U);
    const State old = encode(state);

    const auto whole = open({})->keys(100);
    const auto resumed = open({});
    ASSERT_EQ(restore(*resumed, old), SHF_OK) << resumed->message();
    EXPECT_EQ(resumed->keys(60), std::vector(whole.begin() + 40, whole.end()));

    const auto other = open({{"epoch_samples", "60"}});
    EXPECT_EQ(restore(*other, old), SHF_E_USAGE);
    EXPECT_NE(other->message().find("epoch_samples"), std::string::npos) << other->message();
}

TEST_F(EngineMixEpochs, what_cannot_be_dealt_out_is_refused) {
    const auto refused = [&](Parts parts, const Settings& settings, const std::string& why) {
        const MixClient mix(parts, {}, settings);
        EXPECT_EQ(mix.code, SHF_E_USAGE);
        EXPECT_NE(mix.message().find(why), std::string::npos) << mix.message();
        EXPECT_NE(mix.message().find("help: "), std::string::npos) << mix.message();
    };
    refused(parts(), {{"epoch_samples", "10"}}, "set until=forever");
    refused(parts(), {{"epochs", "2"}}, "epochs of a mix without epoch_samples");
    const auto of_rank = [&](const char* rank) {
        return part(directory / "{000..003}.tar", {{"rank", rank}, {"world_size", "2"}});
    };
    const Settings forever = {{"until", "forever"}, {"epoch_samples", "1"}};
    refused(parts_of(of_rank("0"), of_rank("1")), forever,
            "part 1 of the mix: this stream is that of consumer 1 of 2, and the first one that of "
            "consumer 0 of 2");
    refused(parts_of(of_rank("0"), of_rank("0")), forever, "epoch_samples=1 for 2 consumers");
}

}  // namespace
