// Saved states: what they hold, what they refuse, and what happens when the number of consumers is
// another one. That a stop leaves no trace is in engine_resume_cases_test.cpp.
#include "filter_encoders.h"
#include "resume_client.h"

#include <gtest/gtest.h>
#include <utime.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace {

using namespace shf::test;

class EngineResume : public testing::Test {
  protected:
    EngineResume() { write_shards(directory, std::vector<uint64_t>(16, 40)); }

    [[nodiscard]] std::string url(std::string_view name = "{000..015}.tar") const {
        return directory / name;
    }
    // What a stream has left after `taken` samples were taken, saved and restored.
    [[nodiscard]] State stopped(const Settings& settings, size_t taken) const {
        Client client(url(), settings);
        EXPECT_EQ(client.keys(taken).size(), taken);
        return save(client);
    }

    TempDirectory directory;
    const Watchdog watchdog{300};
};

Settings shuffled(const Settings& more = {}) {
    return Settings{{"lanes", "4"}, {"shuffle", "50"}, {"shuffle_shards", "true"}, {"seed", "5"}} +
           more;
}

TEST_F(EngineResume, names_the_option_that_changed) {
    const State state = stopped(shuffled(), 100);
    for (const auto& [option, value] : Settings{{"shuffle", "51"},
                                                {"seed", "6"},
                                                {"shuffle_shards", "false"},
                                                {"lanes", "8"},
                                                {"resample", "true"}}) {
        Client client(url(), shuffled({{option, value}}));
        EXPECT_EQ(restore(client, state), SHF_E_USAGE);
        EXPECT_NE(client.message().find(option), std::string::npos) << client.message();
        EXPECT_NE(client.message().find("help: "), std::string::npos) << client.message();
        // The stream is as it was.
        EXPECT_EQ(client.keys().size(), 640U);
        EXPECT_EQ(client.code, SHF_END);
    }
}

TEST_F(EngineResume, takes_other_threads_memory_and_batches) {
    Client rest(url(), shuffled());
    const auto all = rest.keys();
    BatchClient client(
        {url()},
        shuffled({{"threads", "3"}, {"memory", "2MiB"}, {"batch", "60"}, {"decode", "txt:bytes"}}));
    ASSERT_EQ(restore(client, stopped(shuffled(), 100)), SHF_OK) << client.message();
    EXPECT_EQ(batch_of(client), std::vector(all.begin() + 100, all.begin() + 160));
}

TEST_F(EngineResume, names_what_changed_in_the_list) {
    const State state = stopped({}, 100);
    Client fewer(url("{000..014}.tar"), {});
    EXPECT_EQ(restore(fewer, state), SHF_E_USAGE);
    EXPECT_NE(fewer.message().find("16 shards, and these are 15"), std::string::npos)
        << fewer.message();
    Client others(std::vector<std::string>{url("{000..014}.tar"), url("000.tar")}, {});
    EXPECT_EQ(restore(others, state), SHF_E_USAGE);
    EXPECT_NE(others.message().find("other names"), std::string::npos) << others.message();
}

// Another folder is the same list.
TEST_F(EngineResume, takes_shards_that_moved) {
    Client client(url(), {});
    const auto all = client.keys();
    const State state = stopped({}, 77);
    std::filesystem::create_directory(directory / "moved");
    for (int s = 0; s < 16; ++s) {
        char name[32];
        std::snprintf(name, sizeof name, "%03d.tar", s);
        std::filesystem::rename(directory / name, (directory / "moved/") + name);
    }
    Client moved(url("moved/{000..015}.tar"), {});
    ASSERT_EQ(restore(moved, state), SHF_OK) << moved.message();
    EXPECT_EQ(moved.keys(), std::vector(all.begin() + 77, all.end()));
}

// Samples that were handed out behind the place that was noted, and are gone now.
TEST_F(EngineResume, says_that_samples_are_gone) {
    const Settings settings{{"lanes", "2"},
                            {"epoch_samples", "10000"},
                            {"shuffle", "5"},
                            {"allow_empty", "true"},
                            {"timeout", "20s"}};
    Client client(url(), settings);
    for (size_t taken = 0; taken < 200;) taken += block_of(client, 100).size();
    const State state = save(client, 1);  // so it goes on from the note
    for (int s = 0; s < 16; s += 2) {     // those of one lane
        char name[32];
        std::snprintf(name, sizeof name, "%03d.tar", s);
        directory.write(name, end_marker());
    }
    Client again(url(), settings);
    ASSERT_EQ(restore(again, state), SHF_OK) << again.message();
    EXPECT_TRUE(again.keys(1).empty());
    EXPECT_EQ(again.code, SHF_E_CHANGED) << again.message();
}

// A shard that changed is never read as if it had not, whatever is skipped else.
TEST_F(EngineResume, names_the_shard_that_changed) {
    for (const char* on_error : {"raise", "skip_sample", "skip_shard"})
        for (const char* shuffle : {"0", "50"}) {
            const Settings settings{{"on_error", on_error}, {"shuffle", shuffle}};
            const State state = stopped(settings, 100);
            const utimbuf times{1, 1 + (shuffle[0] == '0')};
            ASSERT_EQ(::utime(url("002.tar").c_str(), &times), 0);
            Client client(url(), settings);
            ASSERT_EQ(restore(client, state), SHF_OK);
            EXPECT_TRUE(client.keys().empty());
            EXPECT_EQ(client.code, SHF_E_CHANGED) << client.message();
            EXPECT_NE(client.message().find("002.tar"), std::string::npos) << client.message();
        }
}

// The state of a stream that met the changed shard, or none at all, still says which one it wants.
TEST_F(EngineResume, a_failed_stream_saves_the_version_that_it_wanted) {
    const std::string shard = url("002.tar"), away = url("away");
    for (const bool missing : {false, true})
        for (const char* shuffle : {"0", "50", "9"}) {
            const Settings settings{{"shuffle", shuffle}};
            Client whole(url(), settings);
            const auto all = whole.keys();
            const State state = stopped(settings, 100);
            const auto time = std::filesystem::last_write_time(shard);
            const auto change = [&] {
                std::filesystem::last_write_time(shard, time + std::chrono::seconds(1));
            };
            if (missing)
                std::filesystem::rename(shard, away);
            else
                change();
            Client failed(url(), settings);
            ASSERT_EQ(restore(failed, state), SHF_OK);
            const size_t before = failed.keys().size();
            ASSERT_EQ(failed.code, missing ? SHF_E_IO : SHF_E_CHANGED) << failed.message();
            const State again = save(failed);
            if (missing) std::filesystem::rename(away, shard);
            change();
            Client changed(url(), settings);
            ASSERT_EQ(restore(changed, again), SHF_OK) << changed.message();
            EXPECT_TRUE(changed.keys().empty());
            EXPECT_EQ(changed.code, SHF_E_CHANGED) << changed.message();
            std::filesystem::last_write_time(shard, time);
            Client rest(url(), settings);
            ASSERT_EQ(restore(rest, again), SHF_OK) << rest.message();
            EXPECT_EQ(rest.keys(), std::vector(all.begin() + 100 + ptrdiff_t(before), all.end()));
        }
}

// How many epochs there are is no part of a state: it may stand past the last one.
TEST_F(EngineResume, takes_another_number_of_epochs) {
    for (const char* shuffle : {"0", "50"}) {
        Client whole(url(), shuffled({{"shuffle", shuffle}, {"epochs", "4"}}));
        const auto all = whole.keys();
        const State state = stopped(shuffled({{"shuffle", shuffle}, {"epochs", "2"}}), 640 + 100);
        Client more(url(), shuffled({{"shuffle", shuffle}, {"epochs", "4"}}));
        ASSERT_EQ(restore(more, state), SHF_OK) << more.message();
        EXPECT_EQ(more.keys(), std::vector(all.begin() + 740, all.end()));
        Client fewer(url(), shuffled({{"shuffle", shuffle}, {"epochs", "1"}}));
        ASSERT_EQ(restore(fewer, state), SHF_OK) << fewer.message();
        EXPECT_TRUE(fewer.keys().empty());
        EXPECT_EQ(fewer.code, SHF_END);
        // Its own state is as good as the one it had.
        Client again(url(), shuffled({{"shuffle", shuffle}, {"epochs", "4"}}));
        ASSERT_EQ(restore(again, save(fewer)), SHF_OK) << again.message();
        EXPECT_EQ(again.keys(), std::vector(all.begin() + 740, all.end()));
        // One that has come to its end goes on as well.
        const State end = stopped(shuffled({{"shuffle", shuffle}, {"epochs", "2"}}), 2 * 640);
        Client next(url(), shuffled({{"shuffle", shuffle}, {"epochs", "4"}}));
        ASSERT_EQ(restore(next, end), SHF_OK) << next.message();
        EXPECT_EQ(next.keys(), std::vector(all.begin() + 2 * 640, all.end()));
    }
}

TEST_F(EngineResume, refuses_a_stream_that_began) {
    const State state = stopped({}, 5);
    Client client(url(), {});
    (void)client.next();
    EXPECT_EQ(restore(client, state), SHF_E_USAGE) << client.message();
    EXPECT_EQ(client.keys().size(), 639U);
}

TEST_F(EngineResume, refuses_more_unread_samples_than_there_are) {
    Client client(url(), {});
    const size_t count = block_of(client, 20).size();
    shf_state* state = nullptr;
    EXPECT_EQ(shf_stream_save(client.stream, count + 1, &state, &client.error), SHF_E_USAGE);
    EXPECT_EQ(state, nullptr);
    EXPECT_EQ(shf_stream_save(client.stream, count, &state, &client.error), SHF_OK);
    const State all_unread = bytes_of(state);
    Client again(url(), {});
    ASSERT_EQ(restore(again, all_unread), SHF_OK);
    EXPECT_EQ(again.keys().size(), 640U);
}

TEST_F(EngineResume, refuses_bytes_that_are_no_state) {
    const State state = stopped(shuffled(), 100);
    Client client(url(), shuffled());
    EXPECT_EQ(restore(client, {}), SHF_E_FORMAT);
    for (size_t i = 0; i < state.size(); ++i) {
        State damaged = state;
        damaged[i] ^= 0x10;
        EXPECT_LT(restore(client, damaged), 0) << i;
        damaged = state;
        damaged.resize(i);
        EXPECT_LT(restore(client, damaged), 0) << i;
    }
    EXPECT_EQ(client.keys().size(), 640U);
}

// The first row of a run says the shape of all, also after a restore in front of a row that has
// another one; and the first sample says which columns there are.
TEST_F(EngineResume, shapes_and_columns_stay_those_of_the_first_row) {
    const auto npy = [](int rows) {
        std::string header =
            "{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ",), }";
        header.resize(117, ' ');
        header += '\n';
        return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header +
               std::string(static_cast<size_t>(rows), 'x');
    };
    std::string bytes;
    for (int i = 0; i < 40; ++i)
        bytes +=
            member(sample_key(0, static_cast<uint64_t>(i)) + ".npy", npy(i % 10 == 5 ? 3 : 2)) +
            (i == 0 ? member(sample_key(0, 0) + ".cls", "1") : std::string());
    directory.write("rows.tar", bytes + end_marker());
    const Settings settings{{"batch", "5"}, {"missing", "empty"}, {"on_error", "skip_sample"}};
    BatchClient whole({url("rows.tar")}, settings);
    std::vector<std::string> all;
    for (auto keys = batch_of(whole); !keys.empty(); keys = batch_of(whole))
        all.insert(all.end(), keys.begin(), keys.end());
    ASSERT_EQ(whole.code, SHF_END) << whole.message();
    ASSERT_EQ(all.size(), 36U);
    BatchClient first({url("rows.tar")}, settings);
    std::vector<std::string> keys = batch_of(first);  // 0 to 4; 5 is of another shape
    BatchClient rest({url("rows.tar")}, settings);
    ASSERT_EQ(restore(rest, save(first)), SHF_OK) << rest.message();
    for (BatchHandle batch = rest.next_batch(); batch; batch = rest.next_batch()) {
        EXPECT_EQ(column(batch, "npy").shape[1], 2);
        EXPECT_EQ(column(batch, "cls").shape[0],
                  static_cast<int64_t>(shf_batch_row_count(batch.get())));
        for (size_t i = 0; i < shf_batch_row_count(batch.get()); ++i)
            keys.push_back(text_of(column(batch, "__key__"), i));
    }
    EXPECT_EQ(rest.code, SHF_END) << rest.message();
    EXPECT_EQ(keys, all);
}

// A state of a failed stream leads to the same fault.
TEST_F(EngineResume, comes_to_the_same_fault) {
    std::string bytes = shard_bytes(3, 40);
    bytes.resize(20 * 1024 + 700);
    directory.write("003.tar", bytes);
    for (const char* shuffle : {"0", "50"}) {
        Client client(url(), {{"shuffle", shuffle}});
        const auto before = client.keys();
        EXPECT_EQ(client.code, SHF_E_TRUNCATED);
        const std::string message = client.message();
        Client again(url(), {{"shuffle", shuffle}});
        ASSERT_EQ(restore(again, save(client)), SHF_OK) << again.message();
        EXPECT_TRUE(again.keys().empty());
        EXPECT_EQ(again.code, SHF_E_TRUNCATED);
        EXPECT_EQ(again.message(), message);
        Client middle(url(), {{"shuffle", shuffle}});
        EXPECT_EQ(middle.keys(110).size(), 110U);
        Client rest(url(), {{"shuffle", shuffle}});
        ASSERT_EQ(restore(rest, save(middle)), SHF_OK) << rest.message();
        EXPECT_EQ(rest.keys(), std::vector(before.begin() + 110, before.end()));
        EXPECT_EQ(rest.message(), message);
    }
}

TEST_F(EngineResume, says_that_a_pipe_is_read_again) {
    std::vector<std::string> notes;
    const auto logging = [&](shf_options* options) {
        shf_options_set_log(
            options, SHF_LOG_WARNING,
            [](void* to, int32_t, const char* text) {
                static_cast<std::vector<std::string>*>(to)->emplace_back(text);
            },
            &notes);
    };
    const std::vector<std::string> urls{"pipe:cat " + url("000.tar"), url("001.tar")};
    Client client(urls, {});
    ASSERT_EQ(client.keys(25).size(), 25U);
    Client again(urls, {}, logging);
    ASSERT_EQ(restore(again, save(client)), SHF_OK) << again.message();
    EXPECT_EQ(again.keys(1), std::vector<std::string>{sample_key(0, 25)});
    EXPECT_EQ(again.keys().size(), 54U);
    ASSERT_EQ(notes.size(), 1U);
    EXPECT_NE(notes[0].find("cannot seek"), std::string::npos) << notes[0];
}

// ---- Other numbers of consumers -----------------------------------------------------------------

class Elastic : public EngineResume {
  protected:
    // What consumer c of `consumers` gets, at most `most` samples, from a state or the start. Gives
    // the state then.
    static std::vector<std::string> part(const std::string& url, const Settings& settings,
                                         uint64_t consumers, uint64_t c, size_t most,
                                         State& state) {
        Client client(url, settings + Settings{{"world_size", std::to_string(consumers)},
                                               {"rank", std::to_string(c)}});
        if (!state.empty()) {
            EXPECT_EQ(restore(client, state), SHF_OK) << client.message();
        }
        auto keys = client.keys(most);
        EXPECT_TRUE(client.code == SHF_OK || client.code == SHF_END) << client.message();
        state = save(client);
        return keys;
    }
};

// The elements of the global sequence, taken by turns.
std::vector<std::string> woven(const std::vector<std::vector<std::string>>& parts) {
    std::vector<std::string> all;
    for (size_t i = 0;; ++i) {
        bool any = false;
        for (const auto& part : parts)
            if (i < part.size()) {
                all.push_back(part[i]);
                any = true;
            }
        if (!any) return all;
    }
}

TEST_F(Elastic, the_global_sequence_goes_on_with_any_number) {
    for (const Settings& settings :
         {Settings{{"lanes", "8"}},
          Settings{{"lanes", "8"}, {"shuffle", "30"}, {"shuffle_shards", "true"}, {"epochs", "2"}},
          Settings{{"lanes", "8"}, {"shuffle", "9"}, {"epoch_samples", "600"}},
          Settings{{"lanes", "16"}, {"resample", "true"}, {"shuffle", "9"}}}) {
        State none;
        const auto whole = part(url(), settings, 1, 0, SIZE_MAX, none);
        std::vector<std::string> keys;
        State state;
        // Each round another number of consumers takes as many samples.
        for (const uint64_t consumers : {2U, 8U, 1U, 4U, 2U, 8U, 4U}) {
            std::vector<std::vector<std::string>> parts;
            std::vector<State> states;
            for (uint64_t c = 0; c < consumers; ++c) {
                State own = state;
                parts.push_back(
                    part(url(), settings, consumers, c, c + 1 ? 40 / consumers : 0, own));
                states.push_back(own);
            }
            const auto some = woven(parts);
            keys.insert(keys.end(), some.begin(), some.end());
            state = merge(states);
        }
        const auto rest = part(url(), settings, 1, 0, SIZE_MAX, state);
        keys.insert(keys.end(), rest.begin(), rest.end());
        EXPECT_EQ(keys, whole);
    }
}

// Consumers that stand in different rounds lose nothing, and those that are behind come first.
TEST_F(Elastic, unequal_consumers_lose_nothing) {
    const Settings settings{{"lanes", "8"}, {"shuffle", "30"}};
    std::vector<std::string> keys;
    std::vector<State> states(4);
    for (uint64_t c = 0; c < 4; ++c) {
        const auto some = part(url(), settings, 4, c, 10 + 30 * c, states[c]);
        keys.insert(keys.end(), some.begin(), some.end());
    }
    const State merged = merge(states);
    for (uint64_t c = 0; c < 2; ++c) {
        State state = merged;
        const auto rest = part(url(), settings, 2, c, SIZE_MAX, state);
        keys.insert(keys.end(), rest.begin(), rest.end());
    }
    std::sort(keys.begin(), keys.end());
    EXPECT_EQ(keys.size(), 640U);
    EXPECT_EQ(std::unique(keys.begin(), keys.end()), keys.end());
}

TEST_F(Elastic, says_when_states_are_missing) {
    const Settings settings{{"lanes", "4"}, {"world_size", "2"}};
    Client client(url(), settings + Settings{{"rank", "0"}});
    ASSERT_EQ(client.keys(10).size(), 10U);
    const State state = save(client);
    Client other(url(), settings + Settings{{"rank", "1"}});
    EXPECT_EQ(restore(other, state), SHF_E_USAGE);
    EXPECT_NE(other.message().find("merge"), std::string::npos) << other.message();
    shf_state* merged = nullptr;
    const shf_bytes twice[] = {{state.data(), state.size()}, {state.data(), state.size()}};
    EXPECT_EQ(shf_state_merge(twice, 2, &merged, &other.error), SHF_E_USAGE);
    EXPECT_NE(other.message().find("consumer 0"), std::string::npos) << other.message();
}

// 64 lanes with full shuffle buffers.
TEST_F(EngineResume, a_state_is_small) {
    const TempDirectory many;
    write_shards(many, std::vector<uint64_t>(64, 1200));
    const Settings settings{{"lanes", "64"}, {"shuffle", "1000"}};
    Client client(many / "{000..063}.tar", settings);
    ASSERT_EQ(client.keys(64 * 100).size(), 6400U);
    EXPECT_LT(save(client).size(), 8192U);
}

}  // namespace
