// Shards on a disk that wait until somebody publishes or discards them, as a program in C sees it.
#include "writer_client.h"

#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

namespace shf::test {
namespace {

class Prepared : public ::testing::Test {
  protected:
    // Shards of one sample, with their indexes. Their tokens.
    std::vector<std::string> make(const std::string& pattern, size_t count,
                                  const Settings& more = {}) {
        Settings settings = {{"prepare", "true"}, {"write_index", "true"}, {"max_samples", "1"}};
        settings.insert(settings.end(), more.begin(), more.end());
        WriterClient client(pattern, settings);
        for (size_t i = 0; i < count; ++i)
            EXPECT_EQ(client.write("k" + std::to_string(i), {{"txt", std::string(i + 1, 'x')}}),
                      SHF_OK)
                << client.message();
        EXPECT_EQ(client.finish(), SHF_OK) << client.message();
        EXPECT_EQ(shf_writer_shards(client.writer), count);
        std::vector<std::string> tokens;
        for (size_t i = 0; i < count; ++i) {
            tokens.push_back(client.shard(i, SHF_SHARD_TOKEN));
            EXPECT_EQ(client.shard(i, SHF_SHARD_INDEX), client.shard(i) + ".sfidx");
        }
        return tokens;
    }
    int32_t publish(const std::string& token) {
        return shf_publish_prepared(token.c_str(), nullptr, &error);
    }
    [[nodiscard]] std::vector<std::string> hidden() const {
        std::vector<std::string> names = names_in(directory / "");
        std::erase_if(names, [](const std::string& name) { return name[0] != '.'; });
        return names;
    }

    TempDirectory directory;
    shf_error error = {};
};

TEST_F(Prepared, they_appear_as_they_would_have) {
    const std::string folder = directory / "";
    const auto tokens = make(folder + "a-%d.tar", 2);
    EXPECT_EQ(hidden().size(), 4U);
    EXPECT_EQ(names_in(folder), hidden());
    for (int again = 0; again < 2; ++again)
        for (const std::string& token : tokens) EXPECT_EQ(publish(token), SHF_OK) << error.message;
    EXPECT_EQ(names_in(folder),
              (std::vector<std::string>{"a-0.tar", "a-0.tar.sfidx", "a-1.tar", "a-1.tar.sfidx"}));
    EXPECT_EQ(samples_of({folder + "a-{0,1}.tar"}),
              (std::vector<std::string>{"k0 txt=x", "k1 txt=xx"}));
    WriterClient same(folder + "b.tar");
    same.write("k0", {{"txt", "x"}});
    EXPECT_EQ(same.finish(), SHF_OK);
    EXPECT_EQ(same.shard(0, SHF_SHARD_TOKEN), "");
    EXPECT_EQ(bytes_of_file(folder + "a-0.tar"), bytes_of_file(folder + "b.tar"));
    // The index is that of the shard as it is now.
    shf_dataset* data = nullptr;
    shf_options* options = shf_options_new();
    ASSERT_EQ(shf_options_set(options, "index", "require", &error), SHF_OK);
    const std::string url = folder + "a-1.tar";
    const char* urls[] = {url.c_str()};
    EXPECT_EQ(shf_dataset_open(&data, urls, 1, options, &error), SHF_OK) << error.message;
    shf_dataset_close(data);
    shf_options_free(options);
}

TEST_F(Prepared, a_publication_that_ended_in_the_middle_goes_on) {
    const std::string folder = directory / "";
    const std::string token = make(folder + "a-%d.tar", 1).at(0);
    // What a process does first that is killed then.
    for (const std::string& part : hidden())
        if (part.starts_with(".a-0.tar.") && !part.starts_with(".a-0.tar.sfidx")) {
            ASSERT_EQ(::link((folder + "" + part).c_str(), (folder + "a-0.tar").c_str()), 0);
        }
    EXPECT_EQ(publish(token), SHF_OK) << error.message;
    EXPECT_EQ(names_in(folder), (std::vector<std::string>{"a-0.tar", "a-0.tar.sfidx"}));
}

TEST_F(Prepared, a_name_that_was_taken) {
    const std::string folder = directory / "";
    const auto tokens = make(folder + "a-%d.tar", 1);
    WriterClient other(folder + "a-0.tar");
    other.write("other", {{"txt", "1"}});
    ASSERT_EQ(other.finish(), SHF_OK);
    EXPECT_EQ(publish(tokens[0]), SHF_E_IO);
    EXPECT_EQ(error.os_error, EEXIST);
    EXPECT_NE(std::string(error.message).find("a-0.tar: it is there already"), std::string::npos)
        << error.message;
    EXPECT_EQ(samples_of({folder + "a-0.tar"}), (std::vector<std::string>{"other txt=1"}));
    EXPECT_EQ(hidden().size(), 2U);
    shf_options* options = shf_options_new();
    ASSERT_EQ(shf_options_set(options, "overwrite", "true", &error), SHF_OK);
    EXPECT_EQ(shf_publish_prepared(tokens[0].c_str(), options, &error), SHF_OK) << error.message;
    shf_options_free(options);
    EXPECT_EQ(samples_of({folder + "a-0.tar"}), (std::vector<std::string>{"k0 txt=x"}));
    EXPECT_EQ(hidden(), (std::vector<std::string>{}));
}

TEST_F(Prepared, what_is_discarded_cannot_be_published) {
    const std::string folder = directory / "";
    const auto tokens = make(folder + "a-%d.tar", 2);
    EXPECT_EQ(publish(tokens[1]), SHF_OK);
    for (int again = 0; again < 2; ++again)
        for (const std::string& token : tokens)
            EXPECT_EQ(shf_discard_prepared(token.c_str(), nullptr, &error), SHF_OK)
                << error.message;
    EXPECT_EQ(names_in(folder), (std::vector<std::string>{"a-1.tar", "a-1.tar.sfidx"}));
    EXPECT_EQ(publish(tokens[0]), SHF_E_IO);
    EXPECT_NE(std::string(error.message).find("help: write the shard again"), std::string::npos)
        << error.message;
    EXPECT_EQ(publish(tokens[1]), SHF_OK) << error.message;
}

TEST_F(Prepared, wrong_arguments) {
    const std::string folder = directory / "";
    for (const auto call : {shf_publish_prepared, shf_discard_prepared}) {
        EXPECT_EQ(call(nullptr, nullptr, &error), SHF_E_USAGE);
        EXPECT_EQ(call("", nullptr, &error), SHF_E_USAGE);
        EXPECT_EQ(call("shardfeed-prepared 1\n", nullptr, nullptr), SHF_E_USAGE);
    }
    EXPECT_EQ(shf_discard_left(nullptr, nullptr, &error), SHF_E_USAGE);
    EXPECT_EQ(shf_discard_left("hf://datasets/a/b/%d.tar", nullptr, &error), SHF_E_USAGE);
    const auto tokens = make(folder + "a-%d.tar", 1);
    EXPECT_EQ(shf_discard_left((folder + "a-%d.tar").c_str(), nullptr, &error), SHF_OK);
    EXPECT_EQ(hidden().size(), 2U);
    for (const char* pattern : {"-", "pipe:cat"}) {
        const WriterClient client(pattern, {{"prepare", "true"}});
        EXPECT_EQ(client.code, SHF_E_USAGE) << pattern;
    }
    for (const Settings& more : {Settings{{"index_for", "dali"}}, Settings{{"wids_index", "a"}},
                                 Settings{{"index_dir", folder}}}) {
        Settings settings = more;
        settings.emplace_back("prepare", "true");
        const WriterClient client(folder + "b.tar", settings);
        EXPECT_EQ(client.code, SHF_E_USAGE);
    }
}

}  // namespace
}  // namespace shf::test
