// Stop anywhere, save, restore: the same as an uninterrupted run. Random data sets and options.
#include "filter_encoders.h"
#include "resume_client.h"
#include "zip_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace shf::test;

constexpr unsigned cases = 2000;

class Dice {
  public:
    explicit Dice(unsigned seed) : random_(seed) {}
    uint64_t below(uint64_t bound) { return random_() % bound; }
    bool one_in(uint64_t count) { return below(count) == 0; }
    template <typename T>
    T any(std::initializer_list<T> of) {
        return of.begin()[below(of.size())];
    }

  private:
    std::mt19937_64 random_;
};

struct Case {
    std::vector<std::string> urls;
    Settings settings;
    uint64_t batch = 0;
    uint64_t consumers_possible = 1;
};

// Sample `number` with a second field of the same name, which is an error of that sample alone.
std::string doubled(uint64_t shard, uint64_t number) {
    return sample_members(shard, number) + sample_members(shard, number);
}

Case make_case(const TempDirectory& directory, Dice& dice) {
    Case made;
    const uint64_t shards = 1 + dice.below(9);
    const bool damaged = dice.one_in(3);
    const bool indexed = dice.one_in(2);
    for (uint64_t s = 0; s < shards; ++s) {
        const uint64_t samples = 1 + dice.below(dice.one_in(16) ? 700 : 30);
        std::string name = std::to_string(s);
        std::string bytes;
        if (dice.one_in(6)) {
            Zip zip;
            for (uint64_t i = 0; i < samples; ++i) {
                Entry entry;
                entry.name = sample_key(s, i) + ".txt";
                entry.data = sample_key(s, i);
                if (damaged && dice.one_in(9)) entry.crc = 1;
                zip.entries.push_back(entry);
            }
            bytes = zip.bytes();
            name += ".zip";
        } else {
            for (uint64_t i = 0; i < samples; ++i)
                bytes += damaged && dice.one_in(9)
                             ? doubled(s, i)
                             : sample_members(s, i, dice.one_in(20) ? 40000 : dice.below(900));
            bytes += end_marker();
            if (damaged && dice.one_in(5)) bytes.resize(bytes.size() * 3 / 4);
            if (dice.one_in(6)) {
                bytes = dice.one_in(2) ? gzip(bytes) : zstd(bytes);
                name += ".tar.c";
            } else {
                name += ".tar";
            }
        }
        directory.write(name, bytes);
        shf_error ignored = {};  // a damaged one has none
        if (indexed && name.ends_with(".tar"))
            (void)shf_index_build((directory / name).c_str(), nullptr, &ignored);
        made.urls.push_back((!name.ends_with("zip") && dice.one_in(12) ? "pipe:cat " : "") +
                            (directory / name));
    }
    auto set = [&](const char* name, const std::string& value) {
        made.settings.emplace_back(name, value);
    };
    const uint64_t lanes = 1 + dice.below(std::min<uint64_t>(shards, 6));
    set("lanes", std::to_string(lanes));
    set("seed", std::to_string(dice.below(1000)));
    if (dice.one_in(2)) set("shuffle_shards", "true");
    if (!dice.one_in(3)) set("shuffle", std::to_string(dice.below(dice.one_in(3) ? 400 : 30)));
    if (dice.one_in(6)) set("resample", "true");
    if (dice.one_in(8))
        set("slice", std::to_string(dice.below(4)) + "::" + std::to_string(1 + dice.below(4)));
    if (dice.one_in(8)) set("fields", "txt");
    if (dice.one_in(8)) set("select_keys", dice.one_in(2) ? "*[0-6]" : "s*1,*[579]");
    if (dice.one_in(4)) set("epochs", std::to_string(1 + dice.below(3)));
    if (dice.one_in(5))
        set("epoch_samples", std::to_string(1 + dice.below(150)));
    else if (dice.one_in(5))
        set("limit", std::to_string(1 + dice.below(80)));
    if (damaged) {
        set("on_error", dice.one_in(2) ? "skip_sample" : "skip_shard");
        set("max_skips", "1000000");
    }
    if (dice.one_in(3)) {
        made.batch = 1 + dice.below(30);
        set("batch", std::to_string(made.batch));
        set("decode", "txt:bytes");
        set("decode_threads", std::to_string(1 + dice.below(3)));
    }
    return made;
}

Settings threads(Dice& dice) {
    return {{"threads", std::to_string(1 + dice.below(4))}};
}

// Takes some more samples, in any way; false at the end.
bool take_some(BatchClient& client, const Case& run, Dice& dice, std::vector<std::string>& keys,
               size_t& unread, size_t most) {
    unread = 0;
    if (run.batch > 0) {
        const auto batch = batch_of(client);
        keys.insert(keys.end(), batch.begin(), batch.end());
    } else if (dice.one_in(2)) {
        const auto block = block_of(client, dice.one_in(2) ? 0 : 1 + dice.below(50));
        const size_t used = dice.one_in(3) ? block.size() : dice.below(block.size() + 1);
        unread = block.size() - used;
        keys.insert(keys.end(), block.begin(), block.begin() + static_cast<long>(used));
    } else {
        const auto some = client.keys(1 + dice.below(most));
        keys.insert(keys.end(), some.begin(), some.end());
    }
    return client.code == SHF_OK;
}

void check_case(unsigned number) {
    SCOPED_TRACE("case " + std::to_string(number));
    Dice dice(number);
    const TempDirectory directory;
    const Case run = make_case(directory, dice);
    std::string described = std::to_string(run.urls.size()) + " shards";
    for (const auto& [name, value] : run.settings) described += " " + name + "=" + value;
    SCOPED_TRACE(described);
    std::vector<std::string> whole;
    int32_t end = SHF_OK;  // SHF_END, or what is wrong with the data set as a whole
    {
        BatchClient client(run.urls, run.settings + threads(dice));
        ASSERT_EQ(client.code, SHF_OK) << client.message();
        while (client.code == SHF_OK) {
            const auto more = run.batch > 0 ? batch_of(client) : client.keys(100);
            whole.insert(whole.end(), more.begin(), more.end());
        }
        end = client.code;
    }
    std::vector<std::string> keys;
    State state;
    for (bool more = true; more;) {
        BatchClient client(run.urls, run.settings + threads(dice));
        ASSERT_EQ(client.code, SHF_OK) << client.message();
        if (!state.empty()) {
            ASSERT_EQ(restore(client, state), SHF_OK) << client.message();
            // What was restored can be saved at once.
            if (dice.one_in(4)) {
                state = save(client);
                continue;
            }
        }
        const uint64_t steps = 1 + dice.below(12);
        size_t unread = 0;
        for (uint64_t i = 0; more && i < steps && unread == 0; ++i)
            more = take_some(client, run, dice, keys, unread, whole.size() / 2 + 2);
        if (!more) {
            ASSERT_EQ(client.code, end) << client.message();
        }
        state = save(client, unread);
    }
    ASSERT_EQ(keys, whole);
    // And at the end there is nothing more.
    BatchClient client(run.urls, run.settings);
    ASSERT_EQ(restore(client, state), SHF_OK) << client.message();
    EXPECT_TRUE((run.batch > 0 ? batch_of(client) : client.keys(5)).empty());
    EXPECT_EQ(client.code, end) << client.message();
}

// One case alone: SHARDFEED_CASE=17.
TEST(EngineResumeCases, any_stop_is_as_if_there_was_none) {
    const Watchdog watchdog{600};
    if (const char* one = std::getenv("SHARDFEED_CASE"))
        return check_case(static_cast<unsigned>(std::atoi(one)));
    constexpr unsigned count = SANITIZED ? cases / 10 : cases;
    for (unsigned number = 0; number < count && !HasFailure(); ++number) check_case(number);
}

}  // namespace
