// A pass in which no shard could be opened is an error regardless of on_error: a mistyped path is
// no empty data set.
#include "mix_client.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace shf::test;

class EngineUnopened : public testing::Test {
  protected:
    static void expect_refused(const Client& client, const std::string& shard, int32_t code) {
        EXPECT_EQ(client.code, code) << client.message();
        EXPECT_NE(client.message().find(shard), std::string::npos) << client.message();
        EXPECT_NE(client.message().find("no shard of this pass could be opened"), std::string::npos)
            << client.message();
    }

    const Watchdog watchdog{300};
    const TempDirectory directory;
    const Settings ways[8] = {
        {{"threads", "1"}},
        {{"threads", "4"}},
        {{"lanes", "3"}},
        {{"shuffle", "10"}},
        {{"shuffle_shards", "true"}, {"lanes", "2"}},
        {{"epochs", "3"}},
        {{"epochs", "0"}},
        {{"epoch_samples", "7"}},
    };
};

TEST_F(EngineUnopened, a_mistyped_path) {
    for (const char* on_error : {"skip_sample", "skip_shard"})
        for (const Settings& way : ways)
            for (const bool blocks : {false, true}) {
                const Settings settings = way + Settings{{"on_error", on_error}};
                Client client(directory / "no/{000..005}.tar", settings);
                EXPECT_EQ((blocks ? client.block_keys() : client.keys()).size(), 0U);
                expect_refused(client, "no/00", SHF_E_IO);
                EXPECT_EQ(client.error.os_error, ENOENT);
                EXPECT_NE(client.message().find("check the path"), std::string::npos);
                // It stays, as every error does.
                EXPECT_EQ(client.keys().size(), 0U);
                expect_refused(client, "no/00", SHF_E_IO);
            }
}

// It is the first one of the pass that is named.
TEST_F(EngineUnopened, names_the_first) {
    Client client({directory / "x.tar", directory / "y.tar"}, {{"on_error", "skip_shard"}});
    EXPECT_EQ(client.keys().size(), 0U);
    expect_refused(client, "x.tar", SHF_E_IO);
    EXPECT_EQ(client.message().find("y.tar"), std::string::npos) << client.message();
    EXPECT_EQ(client.stat(SHF_STAT_SKIPPED_SHARDS), 2U);
}

TEST_F(EngineUnopened, what_is_no_archive) {
    directory.write("page.tar", "<html><body>log in</body></html>" + zeros(2000));
    directory.write("none.tar", "");
    for (const auto& [name, code] :
         {std::pair{"page.tar", SHF_E_FORMAT}, std::pair{"none.tar", SHF_E_TRUNCATED}}) {
        Client client(directory / name, {{"on_error", "skip_shard"}});
        EXPECT_EQ(client.keys().size(), 0U);
        expect_refused(client, name, code);
    }
    Client command("pipe:exit 3", {{"on_error", "skip_shard"}});
    EXPECT_EQ(command.keys().size(), 0U);
    expect_refused(command, "pipe:exit 3", SHF_E_CHILD);
}

// One that was opened is enough, whatever came of it.
TEST_F(EngineUnopened, one_that_was_opened) {
    write_shards(directory, {5});
    directory.write("cut.tar", shard_bytes(1, 5).substr(0, 700));
    directory.write("empty.tar", end_marker());
    const std::string absent = directory / "absent.tar";
    for (const char* name : {"000.tar", "cut.tar", "empty.tar"})
        for (const bool last : {false, true})
            for (const char* lanes : {"1", "2"}) {
                std::vector<std::string> urls{absent, absent};
                urls.insert(last ? urls.end() : urls.begin(), directory / name);
                Client client(urls, {{"on_error", "skip_shard"},
                                     {"allow_empty", "true"},
                                     {"lanes", lanes},
                                     {"epochs", "2"}});
                EXPECT_EQ(client.keys().size(), std::string(name) == "000.tar" ? 10U : 0U);
                EXPECT_EQ(client.code, SHF_END) << name << client.message();
            }
    // A limit ends the epoch before the shard is over.
    Client limited({absent, directory / "000.tar"}, {{"on_error", "skip_shard"}, {"limit", "3"}});
    EXPECT_EQ(limited.keys().size(), 3U);
    EXPECT_EQ(limited.code, SHF_END) << limited.message();
}

// Each pass of a consumer counts for itself.
TEST_F(EngineUnopened, in_a_later_epoch) {
    const auto urls = write_shards(directory, {5, 5});
    for (const char* lanes : {"1", "2"}) {
        write_shards(directory, {5, 5});
        Client client(
            urls,
            {{"on_error", "skip_shard"}, {"threads", "1"}, {"epochs", "40"}, {"lanes", lanes}});
        EXPECT_EQ(client.keys(10).size(), 10U);
        for (const std::string& url : urls) std::filesystem::remove(url);
        // Readers are ahead by some epochs.
        EXPECT_LT(client.keys().size(), 390U);
        expect_refused(client, directory / "00", SHF_E_IO);
    }
}

TEST_F(EngineUnopened, of_one_consumer) {
    const auto urls = write_shards(directory, {5, 5});
    std::filesystem::remove(urls[1]);
    const Settings settings{{"on_error", "skip_shard"}, {"world_size", "2"}};
    Client first(urls, settings + Settings{{"rank", "0"}});
    EXPECT_EQ(first.keys().size(), 5U);
    EXPECT_EQ(first.code, SHF_END);
    Client second(urls, settings + Settings{{"rank", "1"}});
    EXPECT_EQ(second.keys().size(), 0U);
    expect_refused(second, "001.tar", SHF_E_IO);
}

// Shards that were read before the state was saved are of the same pass.
TEST_F(EngineUnopened, after_a_restore) {
    const auto urls = write_shards(directory, {5, 5});
    const Settings settings{{"on_error", "skip_shard"}};
    State inside, before;
    {
        Client client(urls, settings);
        before = save(client);
        EXPECT_EQ(client.keys(5).size(), 5U);
        (void)client.keys(1);
        inside = save(client);
    }
    std::filesystem::remove(urls[0]);
    Client rest(urls, settings);
    ASSERT_EQ(restore(rest, inside), SHF_OK) << rest.message();
    EXPECT_EQ(rest.keys().size(), 4U);
    EXPECT_EQ(rest.code, SHF_END) << rest.message();
    std::filesystem::remove(urls[1]);
    Client none(urls, settings);
    ASSERT_EQ(restore(none, before), SHF_OK) << none.message();
    EXPECT_EQ(none.keys().size(), 0U);
    expect_refused(none, "000.tar", SHF_E_IO);
}

TEST_F(EngineUnopened, in_batches_and_mixes) {
    write_shards(directory, {5});
    const Settings skipping{{"on_error", "skip_shard"}};
    const Settings batches{{"batch", "4"}, {"decode", "txt:bytes"}};
    BatchClient batched({directory / "no.tar"}, skipping + batches);
    EXPECT_FALSE(batched.next_batch());
    expect_refused(batched, "no.tar", SHF_E_IO);

    MixClient mix(parts_of(part(directory / "000.tar", {{"epochs", "0"}}),
                           part(directory / "no.tar", skipping)),
                  {}, {});
    EXPECT_LT(mix.keys(1000).size(), 1000U);
    expect_refused(mix, "no.tar", SHF_E_IO);

    MixClient both(parts_of(part(directory / "000.tar", {{"epochs", "0"}}),
                            part(directory / "no.tar", skipping)),
                   {}, batches);
    while (both.next_batch()) {
    }
    expect_refused(both, "no.tar", SHF_E_IO);
}

}  // namespace
