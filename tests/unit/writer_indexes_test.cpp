// Indexes of other tools that a writer makes with its shards: they are those of shf_index_export.
#include "writer_client.h"

#include <gtest/gtest.h>

namespace {

using namespace shf::test;
namespace fs = std::filesystem;

class WriterIndexes : public testing::Test {
  protected:
    void write(const std::string& pattern, const Settings& settings,
               const std::vector<std::string>& keys) {
        WriterClient client(folder / pattern, settings);
        ASSERT_EQ(client.code, SHF_OK) << client.message();
        for (const std::string& key : keys)
            ASSERT_EQ(client.write(key, {{"jpg", std::string(700, 'j')}, {"seg.png", ""}}), SHF_OK)
                << client.message();
        ASSERT_EQ(client.finish(), SHF_OK) << client.message();
    }
    std::string exported(const std::vector<std::string>& shards, int32_t format) {
        std::vector<std::string> urls;
        for (const std::string& shard : shards) urls.push_back(folder / shard);
        std::vector<const char*> given;
        for (const std::string& url : urls) given.push_back(url.c_str());
        shf_error error = {};
        const std::string path = folder / "exported";
        EXPECT_EQ(
            shf_index_export(given.data(), given.size(), format, path.c_str(), nullptr, &error),
            SHF_OK)
            << error.message;
        std::string bytes = bytes_of_file(path);
        fs::remove(path);
        return bytes;
    }
    static std::string refusal(const std::string& pattern, const Settings& settings) {
        const WriterClient client(pattern, settings);
        EXPECT_EQ(client.code, SHF_E_USAGE);
        return client.message();
    }

    TempDirectory folder;
};

const std::vector<std::string> keys = {"a",
                                       "b/c",
                                       std::string(120, 'n'),
                                       "d.1/e",
                                       std::string(90, 'p') + "/" + std::string(120, 'q'),
                                       "\xc3\xbc"};

TEST_F(WriterIndexes, are_those_of_an_export) {
    write("t-%02d.tar",
          {{"index_for", "dali,energon"}, {"wids_index", folder / "t.json"}, {"max_samples", "4"}},
          keys);
    for (const char* shard : {"t-00", "t-01"}) {
        const std::string tar = std::string(shard) + ".tar";
        EXPECT_EQ(bytes_of_file(folder / (std::string(shard) + ".idx")),
                  exported({tar}, SHF_INDEX_DALI_1_2));
        EXPECT_EQ(bytes_of_file(folder / (tar + ".idx")), exported({tar}, SHF_INDEX_ENERGON));
    }
    EXPECT_EQ(bytes_of_file(folder / "t.json"), exported({"t-00.tar", "t-01.tar"}, SHF_INDEX_WIDS));
    EXPECT_EQ(names_in(folder / "").size(), 7U) << "no index that was not asked for";
}

TEST_F(WriterIndexes, see_what_the_tools_see_in_names_that_are_not_safe) {
    write("u.tar",
          {{"index_for", "dali,energon"},
           {"wids_index", folder / "u.json"},
           {"unsafe_names", "allow"}},
          {"a", ".hidden", "__meta__", "x.y"});
    EXPECT_EQ(bytes_of_file(folder / "u.idx"), exported({"u.tar"}, SHF_INDEX_DALI_1_2));
    EXPECT_EQ(bytes_of_file(folder / "u.tar.idx"), exported({"u.tar"}, SHF_INDEX_ENERGON));
    EXPECT_EQ(bytes_of_file(folder / "u.json"), exported({"u.tar"}, SHF_INDEX_WIDS));
}

TEST_F(WriterIndexes, of_wids_is_of_zip_files_too) {
    write("z-%d.zip", {{"wids_index", folder / "z.json"}, {"max_samples", "5"}}, keys);
    EXPECT_EQ(bytes_of_file(folder / "z.json"), exported({"z-0.zip", "z-1.zip"}, SHF_INDEX_WIDS));
}

TEST_F(WriterIndexes, forget_a_sample_whose_file_failed) {
    std::ofstream(folder / "large") << std::string(3 << 20, 'x');
    {
        WriterClient client(folder / "c.tar", {{"index_for", "dali,energon"}});
        client.write("a", {{"jpg", "1"}});
        ASSERT_EQ(shf_writer_begin(client.writer, "b", SHF_STRLEN, &client.error), SHF_OK);
        ASSERT_EQ(shf_writer_field(client.writer, "jpg", SHF_STRLEN, "2", 1, &client.error),
                  SHF_OK);
        ASSERT_EQ(shf_writer_field_file(client.writer, "bin", SHF_STRLEN,
                                        (folder / "large").c_str(), &client.error),
                  SHF_OK);
        fs::resize_file(folder / "large", 5);
        ASSERT_EQ(shf_writer_end(client.writer, &client.error), SHF_E_CHANGED);
        client.write("c", {{"jpg", "3"}});
        ASSERT_EQ(client.finish(), SHF_OK) << client.message();
    }
    EXPECT_EQ(bytes_of_file(folder / "c.idx"), exported({"c.tar"}, SHF_INDEX_DALI_1_2));
    EXPECT_EQ(bytes_of_file(folder / "c.tar.idx"), exported({"c.tar"}, SHF_INDEX_ENERGON));
}

TEST_F(WriterIndexes, that_cannot_hold_a_name_cost_that_sample_alone) {
    WriterClient client(folder / "d.tar", {{"index_for", "dali"}});
    EXPECT_EQ(client.write("a", {{"jpg", "1"}}), SHF_OK);
    EXPECT_EQ(client.write("b c", {{"jpg", "2"}}), SHF_E_USAGE);
    EXPECT_NE(client.message().find("an index of DALI cannot hold a name with blanks"),
              std::string::npos)
        << client.message();
    EXPECT_EQ(client.write("d", {{"jpg", "3"}}), SHF_OK) << client.message();
    ASSERT_EQ(client.finish(), SHF_OK) << client.message();
    EXPECT_EQ(samples_of({folder / "d.tar"}), (std::vector<std::string>{"a jpg=1", "d jpg=3"}));
}

TEST_F(WriterIndexes, take_the_place_of_no_file) {
    const Settings all = {{"index_for", "dali,energon"}, {"wids_index", folder / "e.json"}};
    for (const char* name : {"e.idx", "e.tar.idx", "e.json"}) {
        std::ofstream(folder / name) << "precious";
        {
            WriterClient client(folder / "e.tar", all);
            EXPECT_EQ(client.write("a", {{"jpg", "1"}}), SHF_E_IO) << name;
            EXPECT_EQ(client.error.os_error, EEXIST);
            EXPECT_NE(client.message().find(name), std::string::npos) << client.message();
        }
        EXPECT_EQ(bytes_of_file(folder / name), "precious");
        EXPECT_EQ(names_in(folder / "").size(), 1U);
        Settings replacing = all;
        replacing.emplace_back("overwrite", "true");
        write("e.tar", replacing, {"a"});
        EXPECT_NE(bytes_of_file(folder / name), "precious");
        for (const std::string& left : names_in(folder / "")) fs::remove(folder / left);
    }
}

TEST_F(WriterIndexes, nothing_is_made_of_what_is_not_published) {
    {
        WriterClient client(folder / "f.tar",
                            {{"index_for", "dali,energon"}, {"wids_index", folder / "f.json"}});
        client.write("a", {{"jpg", "1"}});
    }
    EXPECT_TRUE(names_in(folder / "").empty());
    WriterClient client(folder / "f.tar", {{"wids_index", folder / "f.json"}});
    EXPECT_EQ(client.finish(), SHF_OK) << "no shard, and no index";
    EXPECT_TRUE(names_in(folder / "").empty());
}

TEST_F(WriterIndexes, are_refused_where_there_can_be_none) {
    const auto expect = [&](const std::string& pattern, const Settings& settings,
                            const char* words) {
        const std::string message = refusal(folder / pattern, settings);
        EXPECT_NE(message.find(words), std::string::npos) << message;
        EXPECT_NE(message.find("help: "), std::string::npos) << message;
    };
    expect("a.tar.gz", {{"index_for", "dali"}}, "not compressed");
    expect("a.tar.zst", {{"wids_index", "a.json"}}, "not compressed");
    expect("a.zip", {{"index_for", "energon"}}, "named .tar");
    expect("a", {{"index_for", "dali"}}, "named .tar");
    expect("a.tar", {{"index_for", "dali,tfrecord"}}, "\"tfrecord\" is no tool");
    expect("a.tar", {{"wids_index", "s3://bucket/a.json"}}, "a file on a local disk");
    EXPECT_NE(refusal("s3://bucket/a.tar", {{"wids_index", "a.json"}}).find("on a local disk"),
              std::string::npos);
    EXPECT_NE(refusal("pipe:cat", {{"wids_index", "a.json"}}).find("is of a file"),
              std::string::npos);
}

}  // namespace
