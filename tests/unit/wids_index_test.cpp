// The JSON index of wids: lists of shards with their numbers of samples.
#include "index_folder.h"
#include "zip_builder.h"

namespace shf::test {
namespace {

using Keys = std::vector<std::string>;

// Two samples in 3072 bytes.
std::string small_shard() {
    return member("0001.jpg", "1") + member("0002.jpg", "2") + end_marker();
}
// One sample in 3072 bytes.
std::string other_shard() {
    return member("0003.jpg", "3") + member("0003.txt", "3") + end_marker();
}
std::string small_zip() {
    return Zip{.entries = {{.name = "1.jpg", .data = "1"},
                           {.name = "1.txt", .data = "1"},
                           {.name = "2.jpg", .data = "2"}}}
        .bytes();
}

// An index that says this of one shard.
std::string index_of(std::string_view shard) {
    return "{\"wids_version\": 1, \"shardlist\": [{" + std::string(shard) + "}]}";
}
std::string index_of_url(std::string_view url) {
    return index_of("\"url\": \"" + std::string(url) + "\", \"nsamples\": 2");
}

class WidsFolder : public IndexFolder {
  public:
    [[nodiscard]] Outcome read(std::string_view json, const Settings& settings = {}) const {
        write("index.json", json);
        return read_index("", SHF_INDEX_WIDS, "index.json", settings);
    }
};

TEST(WidsIndex, lists_shards_with_samples_and_bytes) {
    const WidsFolder folder;
    folder.write("0.tar", small_shard());
    folder.write("1.tar", other_shard());
    const Outcome outcome = folder.write_index({"{0,1}.tar"}, SHF_INDEX_WIDS, "index.json");
    ASSERT_EQ(outcome.code, SHF_OK) << outcome;
    EXPECT_EQ(folder.bytes_of("index.json"),
              "{\n"
              "  \"wids_version\": 1,\n"
              "  \"__kind__\": \"wids-shard-index-v1\",\n"
              "  \"shardlist\": [\n"
              "    {\"url\": \"0.tar\", \"nsamples\": 2, \"filesize\": 3072},\n"
              "    {\"url\": \"1.tar\", \"nsamples\": 1, \"filesize\": 3072}\n"
              "  ]\n"
              "}\n");
    const std::string first = folder.built("0.tar"), second = folder.built("1.tar");
    const Outcome taken = folder.read_index("", SHF_INDEX_WIDS, "index.json");
    ASSERT_EQ(taken.code, SHF_OK) << taken;
    EXPECT_EQ(folder.bytes_of("0.tar.sfidx"), first);
    EXPECT_EQ(folder.bytes_of("1.tar.sfidx"), second);
    EXPECT_EQ(indexed_keys(folder / "{0,1}.tar"), (Keys{"0001", "0002", "0003"}));
}

TEST(WidsIndex, made_by_widsindex_is_read) {
    const WidsFolder folder;
    folder.write("train-0.tar", small_shard());
    const Outcome outcome = folder.read(R"({
  "__kind__": "wids-shard-index-v1",
  "wids_version": 1,
  "shardlist": [
    {
      "url": "train-0.tar",
      "md5sum": "0123456789abcdef0123456789abcdef",
      "nsamples": 2,
      "filesize": 3072,
      "weight": 0.5,
      "name": null,
      "more": {"url": ["x", {"nsamples": -1}], "filesize": false}
    }
  ],
  "name": "train",
  "info": "text \u00fc \ud83d\ude00",
  "base": "http://example.com/",
  "keep": false,
  "other": [[], {"shardlist": [1]}, 1e3]
})");
    EXPECT_EQ(outcome.code, SHF_OK) << outcome;
    EXPECT_TRUE(folder.has("train-0.tar.sfidx"));
}

TEST(WidsIndex, names_shards_from_its_folder) {
    const WidsFolder folder;
    std::filesystem::create_directories(folder / "a/b");
    std::filesystem::create_directories(folder / "a/c");
    folder.write("a/0.tar", small_shard());
    folder.write("a/b/1.tar", small_shard());
    folder.write("a/c/2.tar", small_shard());
    const Outcome outcome = folder.write_index({"a/0.tar", "a/b/1.tar", "a/b/../c/2.tar"},
                                               SHF_INDEX_WIDS, "a/b/i.json");
    ASSERT_EQ(outcome.code, SHF_OK) << outcome;
    const std::string text = folder.bytes_of("a/b/i.json");
    // Shards elsewhere are named from the root on.
    for (const std::string& url : {folder / "a/0.tar", std::string("1.tar"), folder / "a/c/2.tar"})
        EXPECT_NE(text.find("{\"url\": \"" + url + "\""), std::string::npos) << text;
    const Outcome taken = folder.read_index("", SHF_INDEX_WIDS, "a/b/i.json");
    EXPECT_EQ(taken.code, SHF_OK) << taken;
    for (const char* saved : {"a/0.tar.sfidx", "a/b/1.tar.sfidx", "a/c/2.tar.sfidx"})
        EXPECT_TRUE(folder.has(saved)) << saved;
}

TEST(WidsIndex, is_found_from_the_working_folder) {
    const WidsFolder folder;
    folder.write("0.tar", small_shard());
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(folder / "");
    const char* urls[] = {"0.tar"};
    shf_error error = {};
    EXPECT_EQ(shf_index_export(urls, 1, SHF_INDEX_WIDS, "i.json", nullptr, &error), SHF_OK)
        << error.message;
    EXPECT_EQ(shf_index_import(nullptr, SHF_INDEX_WIDS, "i.json", nullptr, &error), SHF_OK)
        << error.message;
    std::filesystem::current_path(before);
    EXPECT_NE(folder.bytes_of("i.json").find("\"url\": \"0.tar\""), std::string::npos);
    EXPECT_TRUE(folder.has("0.tar.sfidx"));
}

TEST(WidsIndex, follows_the_rules_of_relative_urls) {
    const WidsFolder folder;
    std::filesystem::create_directories(folder / "deep/er");
    folder.write("s.tar", small_shard());
    folder.write("deep/s.tar", small_shard());
    folder.write("%20.tar", small_shard());
    folder.write(" .tar", small_shard());
    const std::pair<std::string, const char*> urls[] = {
        {"s.tar", "s.tar"},
        {"./deep//../s.tar", "s.tar"},
        {"deep/s.tar", "deep/s.tar"},
        {folder / "s.tar", "s.tar"},
        {"file:s.tar", "s.tar"},
        {"FILE:" + (folder / "s.tar"), "s.tar"},
        {"file://" + (folder / "s.tar"), "s.tar"},
        {"file://localhost" + (folder / "s.tar"), "s.tar"},
        {"%20.tar", "%20.tar"},
        {"file:%20.tar", " .tar"},
        {"\\u0073.t\\u0061r", "s.tar"},
    };
    for (const auto& [url, shard] : urls) {
        const Outcome outcome = folder.read(index_of_url(url));
        EXPECT_EQ(outcome.code, SHF_OK) << url << ": " << outcome;
        EXPECT_TRUE(folder.has(std::string(shard) + ".sfidx")) << url;
        folder.remove(std::string(shard) + ".sfidx");
    }
    // Not expanded: the index names files.
    for (const char* url : {"{s}.tar", "@s.tar", "${HOME}.tar"})
        expect_refused(folder.read(index_of_url(url)), SHF_E_IO, {"open"});
}

TEST(WidsIndex, with_commands_or_hosts_in_it_is_refused) {
    const WidsFolder folder;
    folder.write("s.tar", small_shard());
    const std::string pipe = "pipe:touch " + (folder / "ran");
    expect_refused(folder.read(index_of_url(pipe)), SHF_E_USAGE,
                   {"index.json", "must not name a command"});
    EXPECT_FALSE(folder.has("ran"));
    for (const char* url : {"http://example.com/s.tar", "https://example.com/s.tar",
                            "HTTP://example.com/s.tar", "s3://bucket/s.tar", "gs://bucket/s.tar",
                            "//example.com/s.tar", "c:s.tar", "s.tar?x=1", "s.tar#x"})
        expect_refused(folder.read(index_of_url(url)), SHF_E_UNSUPPORTED, {"index.json"});
    expect_refused(folder.read(index_of_url("file://example.com/s.tar")), SHF_E_USAGE,
                   {"example.com"});
    // What the URL hides stays hidden.
    const Outcome secret = folder.read(index_of_url("https://user:word@example.com/s.tar?key=1"));
    EXPECT_EQ(secret.message.find("word"), std::string::npos) << secret;
    EXPECT_EQ(secret.message.find("key"), std::string::npos) << secret;
    // Nothing is opened before all of them are known.
    expect_refused(folder.read(R"({"wids_version": 1, "shardlist": [{"url": "s.tar", "nsamples": 2},
                        {"url": "pipe:true", "nsamples": 2}]})"),
                   SHF_E_USAGE);
    EXPECT_FALSE(folder.has("s.tar.sfidx"));
}

TEST(WidsIndex, that_lies_is_refused) {
    const WidsFolder folder;
    folder.write("s.tar", small_shard());
    const std::string url = R"("url": "s.tar", )";
    expect_refused(folder.read(index_of(url + R"("nsamples": 3, "filesize": 3072)")), SHF_E_CHANGED,
                   {"s.tar", "index.json", "shard 0", "nsamples 3", "and 2"});
    expect_refused(folder.read(index_of(url + R"("nsamples": 2, "filesize": 10240)")),
                   SHF_E_CHANGED, {"s.tar", "filesize 10240", "and 3072", "help: "});
    expect_refused(folder.read(index_of(url + R"("nsamples": 0)")), SHF_E_CHANGED, {"nsamples 0"});
    expect_refused(folder.read(index_of_url("other.tar")), SHF_E_IO, {"other.tar"});
    EXPECT_FALSE(folder.has("s.tar.sfidx"));
    expect_refused(folder.read(R"({"wids_version": 1, "shardlist": [{"url": "s.tar", "nsamples": 2},
                                   {"url": "s.tar", "nsamples": 1}]})"),
                   SHF_E_CHANGED, {"shard 1"});
    folder.write("s.tar", "not a tar at all, but long enough" + zeros(600));
    expect_refused(folder.read(index_of(url + R"("nsamples": 2)")), SHF_E_FORMAT, {"s.tar"});
}

TEST(WidsIndex, that_is_malformed_is_refused) {
    const WidsFolder folder;
    folder.write("s.tar", small_shard());
    const std::string shard = R"({"url": "s.tar", "nsamples": 2})";
    const std::string list = R"("shardlist": [)" + shard + "]";
    for (const std::string& json : std::vector<std::string>{
             "",
             " ",
             "{",
             "[]",
             "1",
             "null",
             "\"text\"",
             "{}",
             "nonsense",
             "{" + list + "}",                                            // no version
             "{\"wids_version\": 1}",                                     // no list
             "{\"wids_version\": 1, \"shardlist\": []}",                  //
             "{\"wids_version\": \"1\", " + list + "}",                   //
             "{\"wids_version\": 1.0, " + list + "}",                     //
             "{\"wids_version\": true, " + list + "}",                    //
             "{\"wids_version\": 1, \"__kind__\": 1, " + list + "}",      //
             "{\"wids_version\": 1, \"shardlist\": " + shard + "}",       //
             "{\"wids_version\": 1, \"shardlist\": \"s.tar\"}",           //
             "{\"wids_version\": 1, \"shardlist\": [[" + shard + "]]}",   //
             "{\"wids_version\": 1, \"shardlist\": [\"s.tar\"]}",         //
             "{\"wids_version\": 1, \"shardlist\": [null]}",              //
             "{\"wids_version\": 1, " + list + ",}",                      //
             "{\"wids_version\": 1, " + list + "} x",                     //
             "{\"wids_version\": 1, " + list + "}{}",                     //
             "{\"wids_version\": 1, // comment\n" + list + "}",           //
             index_of(R"("url": "s.tar")"),                               //
             index_of(R"("nsamples": 2)"),                                //
             index_of(R"("url": "", "nsamples": 2)"),                     //
             index_of(R"("url": "s.tar\u0000", "nsamples": 2)"),          //
             index_of(R"("url": 1, "nsamples": 2)"),                      //
             index_of(R"("url": "s.tar", "nsamples": -2)"),               //
             index_of(R"("url": "s.tar", "nsamples": 2.0)"),              //
             index_of(R"("url": "s.tar", "nsamples": "2")"),              //
             index_of(R"("url": "s.tar", "nsamples": [2])"),              //
             index_of(R"("url": "s.tar", "nsamples": {"nsamples": 2})"),  //
             index_of(R"("url": "s.tar", "nsamples": 1e999)"),            //
             index_of(R"("url": "s.tar", "nsamples": 18446744073709551618)"),
             index_of(R"("url": "s.tar", "nsamples": 2, "filesize": null)"),
             index_of("\"url\": \"s.tar\xff\", \"nsamples\": 2"),  // not UTF-8
             index_of(R"("url": "s.tar\udc80", "nsamples": 2)"),   // half a character
         })
        expect_refused(folder.read(json), SHF_E_FORMAT, {"index.json"});
    for (const std::string& json : {
             "{\"wids_version\": 2, " + list + "}",
             "{\"wids_version\": 1, \"__kind__\": \"other\", " + list + "}",
             R"({"wids_version": 1, "datasets": [{"source_url": "other.json"}]})" + std::string(),
         })
        expect_refused(folder.read(json), SHF_E_UNSUPPORTED, {"index.json"});
    EXPECT_FALSE(folder.has("s.tar.sfidx"));
}

TEST(WidsIndex, may_be_deep_but_not_without_end) {
    const WidsFolder folder;
    folder.write("s.tar", small_shard());
    const auto nested = [](size_t depth) {
        return "{\"x\": " + std::string(depth, '[') + std::string(depth, ']') +
               R"(, "wids_version": 1, "shardlist": [{"url": "s.tar", "nsamples": 2}]})";
    };
    EXPECT_EQ(folder.read(nested(63)).code, SHF_OK);
    for (const size_t depth : {64U, 1000000U})
        expect_refused(folder.read(nested(depth)), SHF_E_FORMAT, {"64 deep"});
    expect_refused(folder.read(std::string(1000000, '[')), SHF_E_FORMAT);
    std::string objects;
    for (int i = 0; i < 100000; ++i) objects += "{\"shardlist\": [";
    expect_refused(folder.read(objects), SHF_E_FORMAT);
}

TEST(WidsIndex, that_is_damaged_never_gives_another_index) {
    const WidsFolder folder;
    folder.write("s.tar", small_shard());
    const std::string right = folder.built("s.tar");
    const std::string json = R"({"wids_version":1,"__kind__":"wids-shard-index-v1","shardlist":)"
                             R"([{"url":"s.tar","nsamples":2,"filesize":3072}]})";
    const auto expect_error_or_same = [&](const std::string& bytes) {
        const Outcome outcome = folder.read(bytes);
        if (outcome.code == SHF_OK)
            EXPECT_EQ(folder.bytes_of("s.tar.sfidx"), right) << bytes;
        else
            EXPECT_FALSE(folder.has("s.tar.sfidx")) << bytes << ": " << outcome;
        EXPECT_NE(outcome.code, SHF_E_INTERNAL) << outcome;
        folder.remove("s.tar.sfidx");
    };
    for (size_t size = 0; size < json.size(); ++size)
        EXPECT_NE(folder.read(json.substr(0, size)).code, SHF_OK) << size;
    for (size_t i = 0; i < json.size(); ++i)
        for (const char c : {'\0', ' ', '"', '{', '[', ',', '1', 'x', '\\', '\xff'}) {
            std::string damaged = json;
            damaged[i] = c;
            expect_error_or_same(damaged);
        }
}

TEST(WidsIndex, escapes_what_json_cannot_hold) {
    const WidsFolder folder;
    const std::string name = "a\"b\\c \xc3\xbc\x7f.tar";
    folder.write(name, small_shard());
    const Settings as_is = {{"expand", "false"}};
    const Outcome outcome = folder.write_index({name}, SHF_INDEX_WIDS, "index.json", as_is);
    ASSERT_EQ(outcome.code, SHF_OK) << outcome;
    EXPECT_NE(folder.bytes_of("index.json").find("\"url\": \"a\\\"b\\\\c \xc3\xbc\x7f.tar\""),
              std::string::npos)
        << folder.bytes_of("index.json");
    const Outcome taken = folder.read_index("", SHF_INDEX_WIDS, "index.json");
    EXPECT_EQ(taken.code, SHF_OK) << taken;
    EXPECT_TRUE(folder.has(name + ".sfidx"));
}

TEST(WidsIndex, names_a_file_like_a_url_from_the_root_on) {
    const WidsFolder folder;
    for (const std::string& name : {std::string("http:x.tar"), std::string("1:2.tar"),
                                    std::string(" s.tar"), std::string("pipe:x.tar")}) {
        folder.write(name, small_shard());
        const std::string url = "file:" + (folder / name);
        const char* urls[] = {url.c_str()};
        shf_error error = {};
        ASSERT_EQ(shf_index_export(urls, 1, SHF_INDEX_WIDS, (folder / "index.json").c_str(),
                                   nullptr, &error),
                  SHF_OK)
            << error.message;
        EXPECT_NE(folder.bytes_of("index.json").find("\"" + (folder / name) + "\""),
                  std::string::npos)
            << folder.bytes_of("index.json");
        const Outcome taken = folder.read_index("", SHF_INDEX_WIDS, "index.json");
        EXPECT_EQ(taken.code, SHF_OK) << taken;
        EXPECT_TRUE(folder.has(name + ".sfidx"));
    }
}

TEST(WidsIndex, knows_the_file_of_a_url) {
    const WidsFolder folder;
    folder.write("s.tar", small_shard());
    for (const char* scheme : {"file:", "FILE://", "File://localhost"}) {
        const std::string url = scheme + (folder / "s.tar");
        const char* urls[] = {url.c_str()};
        shf_error error = {};
        EXPECT_EQ(shf_index_export(urls, 1, SHF_INDEX_WIDS, (folder / "index.json").c_str(),
                                   nullptr, &error),
                  SHF_OK)
            << error.message;
        EXPECT_NE(folder.bytes_of("index.json").find("{\"url\": \"s.tar\""), std::string::npos)
            << folder.bytes_of("index.json");
        EXPECT_EQ(
            shf_index_export(urls, 1, SHF_INDEX_WIDS, (folder / "s.tar").c_str(), nullptr, &error),
            SHF_E_USAGE);
        ASSERT_TRUE(folder.bytes_of("s.tar") == small_shard());
    }
}

TEST(WidsIndex, cannot_hold_every_path) {
    const WidsFolder folder;
    for (const char* name : {"a?.tar", "a#.tar", "a;b.tar", "a\n.tar", "a\xff.tar"}) {
        folder.write(name, small_shard());
        expect_refused(folder.write_index({name}, SHF_INDEX_WIDS, "index.json"), SHF_E_UNSUPPORTED,
                       {"another name"});
    }
    EXPECT_FALSE(folder.has("index.json"));
}

TEST(WidsIndex, counts_the_samples_of_zip_files) {
    const WidsFolder folder;
    folder.write("s.zip", small_zip());
    const Outcome outcome = folder.write_index({"s.zip"}, SHF_INDEX_WIDS, "index.json");
    ASSERT_EQ(outcome.code, SHF_OK) << outcome;
    EXPECT_NE(folder.bytes_of("index.json")
                  .find("\"nsamples\": 2, \"filesize\": " + std::to_string(small_zip().size())),
              std::string::npos)
        << folder.bytes_of("index.json");
    EXPECT_EQ(folder.read_index("", SHF_INDEX_WIDS, "index.json").code, SHF_OK);
    EXPECT_EQ(folder.count(), 2U);  // a ZIP file needs no index
    expect_refused(folder.read(index_of(R"("url": "s.zip", "nsamples": 3)")), SHF_E_CHANGED,
                   {"s.zip", "nsamples 3", "and 2"});
}

// wids takes hidden files and metadata for samples.
TEST(WidsIndex, has_as_many_samples_as_wids_sees) {
    const WidsFolder folder;
    folder.write("s.tar", member("__meta__/z.json", "{}") + member("0001.jpg", "1") +
                              member("README", "") + member("0001.txt", "1") + member(".hid", "") +
                              member("d.1/x", "") + end_marker());
    const Outcome outcome = folder.write_index({"s.tar"}, SHF_INDEX_WIDS, "index.json");
    ASSERT_EQ(outcome.code, SHF_OK) << outcome;
    // "__meta__/z", "0001", "" and "d".
    EXPECT_NE(folder.bytes_of("index.json").find("\"nsamples\": 4,"), std::string::npos);
    for (const char* count : {"4", "1"}) {
        const Outcome taken =
            folder.read(index_of(std::string(R"("url": "s.tar", "nsamples": )") + count));
        EXPECT_EQ(taken.code, SHF_OK) << taken;
        EXPECT_EQ(indexed_keys(folder / "s.tar"), (Keys{"0001"}));
    }
    for (const char* count : {"0", "2", "3", "5"})
        expect_refused(
            folder.read(index_of(std::string(R"("url": "s.tar", "nsamples": )") + count)),
            SHF_E_CHANGED);
}

TEST(WidsIndex, is_refused_for_what_is_no_shard) {
    const WidsFolder folder;
    folder.write("s.tar", small_shard());
    folder.write("empty.tar", end_marker());
    folder.write("index.json", "before");
    expect_refused(folder.write_index({}, SHF_INDEX_WIDS, "index.json"), SHF_E_USAGE);
    expect_refused(folder.write_index({"s.tar", "none.tar"}, SHF_INDEX_WIDS, "index.json"),
                   SHF_E_IO, {"none.tar"});
    expect_refused(folder.write_index({"s.tar", "empty.tar"}, SHF_INDEX_WIDS, "index.json"),
                   SHF_E_FORMAT, {"empty.tar"});
    expect_refused(folder.write_index({"s.tar"}, SHF_INDEX_WIDS, "s.tar"), SHF_E_USAGE);
    expect_refused(folder.read_index("s.tar", SHF_INDEX_WIDS, "index.json"), SHF_E_USAGE,
                   {"names its shards"});
    EXPECT_EQ(folder.bytes_of("index.json"), "before");
    const Outcome outcome =
        folder.write_index({"empty.tar"}, SHF_INDEX_WIDS, "index.json", {{"allow_empty", "true"}});
    EXPECT_EQ(outcome.code, SHF_OK) << outcome;
    EXPECT_NE(folder.bytes_of("index.json").find("\"nsamples\": 0"), std::string::npos);
}

}  // namespace
}  // namespace shf::test
