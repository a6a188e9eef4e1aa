// What a writer writes is read back as it was, in every format, and shards appear whole or not at
// all.
#include "writer_client.h"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <random>
#include <thread>

namespace {

using namespace shf::test;
namespace fs = std::filesystem;

class Writer : public testing::Test {
  protected:
    TempDirectory folder;
};

// Samples with keys and bytes of all kinds.
std::vector<std::pair<std::string, Fields>> random_samples(uint64_t seed, size_t count) {
    std::mt19937_64 random(seed);
    std::vector<std::pair<std::string, Fields>> samples;
    for (size_t i = 0; i < count; ++i) {
        std::string key = "k" + std::to_string(i);
        if (i % 5 == 0) key = "a.b/" + key;
        if (i % 7 == 0) key += "\xff\xfe";
        if (i % 11 == 0) key = std::string(60, 'd') + "/" + std::string(90, 'e') + key;
        if (i % 13 == 0) key += std::string(300, 'x');
        Fields fields;
        for (const char* name : {"txt", "seg.png", "cls"}) {
            std::string data(random() % (i % 17 == 0 ? 70000 : 900), '\0');
            for (char& c : data) c = static_cast<char>(random() % (i % 2 == 0 ? 256 : 4));
            if (random() % 4 != 0) fields.emplace_back(name, data);
        }
        if (fields.empty()) fields.emplace_back("empty", "");
        samples.emplace_back(key, fields);
    }
    return samples;
}

std::vector<std::string> shown(const std::vector<std::pair<std::string, Fields>>& samples) {
    std::vector<std::string> texts;
    for (const auto& [key, fields] : samples) {
        std::string text = key;
        for (const auto& [name, data] : fields) text += " " + name + "=" + data;
        texts.push_back(text);
    }
    return texts;
}

class WriterFormats : public Writer, public testing::WithParamInterface<const char*> {};

TEST_P(WriterFormats, come_back_as_they_were_whatever_compresses) {
    const auto samples = random_samples(1, 150);
    std::string first;
    for (const char* threads : {"1", "3"}) {
        const std::string path = folder / (std::string(threads) + GetParam());
        WriterClient client(path, {{"compress_threads", threads}});
        ASSERT_EQ(client.code, SHF_OK) << client.message();
        for (const auto& [key, fields] : samples)
            ASSERT_EQ(client.write(key, fields), SHF_OK) << client.message();
        ASSERT_EQ(client.finish(), SHF_OK) << client.message();
        EXPECT_EQ(samples_of({path}), shown(samples));
        EXPECT_EQ(client.info(0, SHF_SHARD_SAMPLES), samples.size());
        EXPECT_EQ(client.info(0, SHF_SHARD_BYTES), fs::file_size(path));
        EXPECT_EQ(client.shard(0), path);
        const std::string bytes = bytes_of_file(path);
        if (first.empty()) first = bytes;
        EXPECT_EQ(bytes, first) << "by " << threads << " threads";
    }
}

INSTANTIATE_TEST_SUITE_P(all, WriterFormats,
                         testing::Values(".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz",
                                         ".tar.zst", ".tar.lz4", ".zip"));

TEST_F(Writer, an_index_is_that_of_a_walk) {
    const auto samples = random_samples(2, 200);
    WriterClient client(folder / "a-%03d.tar", {{"write_index", "true"}, {"max_samples", "150"}});
    for (const auto& [key, fields] : samples) client.write(key, fields);
    ASSERT_EQ(client.finish(), SHF_OK) << client.message();
    for (const char* name : {"a-000.tar", "a-001.tar"}) {
        const std::string index = folder / (std::string(name) + ".sfidx");
        const std::string written = bytes_of_file(index);
        shf_error error = {};
        ASSERT_EQ(shf_index_build((folder / name).c_str(), nullptr, &error), SHF_OK)
            << error.message;
        EXPECT_EQ(written, bytes_of_file(index));
    }
    EXPECT_EQ(client.shard(1, SHF_SHARD_INDEX), folder / "a-001.tar.sfidx");
}

TEST_F(Writer, shards_end_by_samples_and_by_bytes) {
    for (const char* suffix : {".tar", ".zip"}) {
        const std::string pattern = folder / (std::string("b-%02d") + suffix);
        WriterClient client(pattern, {{"max_bytes", "40960"}, {"first_shard", "7"}});
        for (size_t i = 0; i < 100; ++i)
            client.write("k" + std::to_string(i),
                         {{"jpg", std::string(i == 50 ? 60000 : 2000, 'x')}});
        ASSERT_EQ(client.finish(), SHF_OK) << client.message();
        std::vector<std::string> urls;
        const uint64_t shards = shf_writer_shards(client.writer);
        uint64_t larger = 0;
        for (uint64_t i = 0; i < shards; ++i) {
            urls.push_back(client.shard(i));
            larger += fs::file_size(urls.back()) > 40960 ? 1 : 0;
        }
        EXPECT_EQ(urls.front(), folder / (std::string("b-07") + suffix));
        EXPECT_EQ(larger, 1U) << "the one of the large sample";
        EXPECT_GE(shards, 7U);
        EXPECT_EQ(samples_of(urls).size(), 100U);
    }
}

TEST_F(Writer, nothing_is_seen_of_what_is_not_published) {
    {
        WriterClient client(folder / "c.tar");
        client.write("a", {{"txt", "1"}});
        ASSERT_EQ(shf_writer_flush(client.writer, 1, &client.error), SHF_OK);
        const auto names = names_in(folder / "");
        ASSERT_EQ(names.size(), 1U);
        EXPECT_TRUE(names[0].starts_with(".c.tar.") && names[0].ends_with(".partial")) << names[0];
        // What was flushed is there, whole.
        EXPECT_EQ(samples_of({folder / names[0]}, {{"end_marker", "optional"}}),
                  std::vector<std::string>{"a txt=1"});
    }
    EXPECT_TRUE(names_in(folder / "").empty());
    {
        WriterClient client(folder / "c.tar", {{"keep_partial", "true"}});
        client.write("a", {{"txt", "1"}});
    }
    EXPECT_EQ(names_in(folder / "").size(), 1U);
}

TEST_F(Writer, without_samples_there_is_no_shard) {
    WriterClient client(folder / "d.tar");
    EXPECT_EQ(client.finish(), SHF_OK) << client.message();
    EXPECT_TRUE(names_in(folder / "").empty());
    EXPECT_EQ(client.finish(), SHF_E_USAGE);
    EXPECT_EQ(client.write("a", {{"txt", "1"}}), SHF_E_USAGE);
}

TEST_F(Writer, nothing_is_overwritten) {
    folder.write("e.tar", "old");
    WriterClient client(folder / "e.tar");
    EXPECT_EQ(client.write("a", {{"txt", "1"}}), SHF_E_IO);
    EXPECT_EQ(client.error.os_error, EEXIST);
    EXPECT_NE(client.message().find("e.tar: it is there already"), std::string::npos)
        << client.message();
    EXPECT_NE(client.message().find("overwrite=true"), std::string::npos) << client.message();

    // Also not what appears meanwhile.
    WriterClient late(folder / "f.tar");
    late.write("a", {{"txt", "1"}});
    folder.write("f.tar", "new");
    EXPECT_EQ(late.finish(), SHF_E_IO);
    EXPECT_EQ(late.error.os_error, EEXIST);
    EXPECT_EQ(late.finish(), SHF_E_IO) << "it repeats";
    EXPECT_EQ(bytes_of_file(folder / "f.tar"), "new");

    WriterClient over(folder / "e.tar", {{"overwrite", "true"}});
    over.write("a", {{"txt", "1"}});
    EXPECT_EQ(over.finish(), SHF_OK) << over.message();
    EXPECT_EQ(samples_of({folder / "e.tar"}), std::vector<std::string>{"a txt=1"});
}

TEST_F(Writer, names_that_would_not_come_back_are_refused) {
    WriterClient client(folder / "g.tar");
    const std::vector<std::tuple<std::string, std::string, std::string>> bad = {
        {"", "txt", "no name"},
        {"a/", "txt", "no name"},
        {std::string("a\0b", 3), "txt", "NUL"},
        {"a", std::string("t\0", 2), "NUL"},
        {"a", "", "is empty"},
        {"a", "b/c", "slash"},
        {"a.b", "txt", "dot in its last component"},
        {"/a", "txt", "absolute"},
        {"../a", "txt", "\"..\""},
        {"a/../b", "txt", "\"..\""},
        {"__a__", "txt", ""},
        {"__a__/b", "txt", "pass over"},
        {std::string(70000, 'x'), "txt", "65535"},
    };
    for (const auto& [key, field, cause] : bad) {
        if (key == "__a__") continue;  // a name with a suffix is no metadata
        EXPECT_EQ(client.write(key, {{field, "1"}}), SHF_E_USAGE) << key;
        EXPECT_NE(client.message().find(cause), std::string::npos) << client.message();
    }
    EXPECT_EQ(client.write("a", {{"txt", "1"}, {"TXT", "2"}}), SHF_E_USAGE);
    EXPECT_EQ(client.write("a", {}), SHF_E_USAGE);
    EXPECT_EQ(client.write("a", {{"txt", "1"}}), SHF_OK) << client.message();
    EXPECT_EQ(client.write("a", {{"txt", "1"}}), SHF_E_USAGE);
    EXPECT_EQ(client.write("b", {{"txt", "1"}}), SHF_OK);
    EXPECT_EQ(client.write("a", {{"cls", "1"}}), SHF_E_USAGE);
    EXPECT_NE(client.message().find("in the shard already"), std::string::npos);
    ASSERT_EQ(client.finish(), SHF_OK) << client.message();
    EXPECT_EQ(samples_of({folder / "g.tar"}), (std::vector<std::string>{"a txt=1", "b txt=1"}));

    WriterClient lenient(folder / "h.tar",
                         {{"unsafe_names", "allow"}, {"duplicate_keys", "accept"}});
    for (const char* key : {"a.b", "/a", "../a"})
        EXPECT_EQ(lenient.write(key, {{"txt", "1"}}), SHF_OK) << lenient.message();
    EXPECT_EQ(lenient.write("/a", {{"cls", "1"}}), SHF_OK);
    EXPECT_EQ(lenient.write("/a", {{"txt", "1"}}), SHF_E_USAGE) << "two samples would become one";
    EXPECT_EQ(lenient.finish(), SHF_OK);
}

TEST_F(Writer, patterns_and_options_are_checked_when_it_is_opened) {
    const std::vector<std::tuple<std::string, Settings, std::string>> bad = {
        {"a-%s.tar", {}, "no number of a shard"},
        {"a-%d-%d.tar", {}, "second number"},
        {"a-%0d.tar", {}, "1 to 20 digits"},
        {"a-%5d.tar", {}, "no number of a shard"},
        {"a-%", {}, "no number of a shard"},
        {"a-%n.tar", {}, "no number of a shard"},
        {"", {}, "no name"},
        {"a.tar", {{"max_samples", "1"}}, "has no number"},
        {"a.zip", {{"compression", "zstd"}}, "not compressed as a whole"},
        {"a.tar.xz", {{"level", "12"}}, "no level 12"},
        {"a.tar", {{"write_index", "true"}, {"unsafe_names", "allow"}}, "as readers find them"},
    };
    for (const auto& [pattern, settings, cause] : bad) {
        WriterClient client(pattern, settings);
        EXPECT_EQ(client.code, SHF_E_USAGE) << pattern;
        EXPECT_NE(client.message().find(cause), std::string::npos) << client.message();
        EXPECT_EQ(client.writer, nullptr);
    }
    WriterClient percent(folder / "100%%-%02d.tar");
    percent.write("a", {{"txt", "1"}});
    ASSERT_EQ(percent.finish(), SHF_OK) << percent.message();
    EXPECT_EQ(names_in(folder / ""), std::vector<std::string>{"100%-00.tar"});

    WriterClient lzip("a.tar.lz");
    EXPECT_EQ(lzip.code, SHF_E_UNSUPPORTED);
    WriterClient remote("hf://datasets/o/n/a.tar");
    EXPECT_EQ(remote.write("a", {{"txt", "1"}}), SHF_E_USAGE);
}

TEST_F(Writer, files_become_fields) {
    const std::string small = "small", large(3 << 20, 'L');
    folder.write("small", small);
    folder.write("large", large);
    for (const char* name : {"i.tar", "i.zip", "i.tar.zst"}) {
        WriterClient client(folder / name);
        ASSERT_EQ(client.write_file("a", "jpg", folder / "small"), SHF_OK) << client.message();
        ASSERT_EQ(client.write_file("b", "jpg", folder / "large"), SHF_OK) << client.message();
        // What is no file, or not there, costs its sample alone.
        EXPECT_EQ(client.write_file("c", "jpg", folder / "none"), SHF_E_IO);
        EXPECT_EQ(client.error.os_error, ENOENT);
        EXPECT_EQ(client.write_file("c", "jpg", folder / ""), SHF_E_USAGE) << client.message();
        EXPECT_EQ(shf_writer_end(client.writer, &client.error), SHF_E_USAGE);
        ASSERT_EQ(client.write_file("c", "jpg", folder / "small"), SHF_OK) << client.message();
        ASSERT_EQ(client.finish(), SHF_OK) << client.message();
        EXPECT_EQ(samples_of({folder / name}),
                  (std::vector<std::string>{"a jpg=small", "b jpg=" + large, "c jpg=small"}));
    }
}

TEST_F(Writer, what_a_url_names_becomes_a_field) {
    WriterClient client(folder / "u.tar", {{"memory", "1MiB"}});
    folder.write("small", "bytes of a file");
    folder.write("large", std::string((1 << 20) + 1, 'L'));
    const auto add = [&](std::string_view key, const std::string& url) {
        int32_t code = shf_writer_begin(client.writer, key.data(), key.size(), &client.error);
        if (code == SHF_OK)
            code = shf_writer_field_url(client.writer, "x", 1, url.c_str(), &client.error);
        return code == SHF_OK ? shf_writer_end(client.writer, &client.error) : code;
    };
    EXPECT_EQ(add("a", "file://" + std::string(folder / "small")), SHF_OK) << client.message();
    EXPECT_EQ(add("b", folder / "large"), SHF_E_LIMIT);
    EXPECT_NE(client.message().find("raise memory"), std::string::npos) << client.message();
    EXPECT_EQ(add("b", "pipe:printf part; exit 3"), SHF_E_CHILD);
    EXPECT_NE(client.message().find("pipe:printf part; exit 3: "), std::string::npos)
        << client.message();
    EXPECT_EQ(add("b", folder / "none"), SHF_E_IO);
    EXPECT_EQ(add("b", "nosuch://x"), SHF_E_UNSUPPORTED);
    EXPECT_EQ(shf_writer_field_url(client.writer, "x", 1, nullptr, &client.error), SHF_E_USAGE);
    EXPECT_EQ(add("b", "pipe:head -c 1000000 /dev/zero"), SHF_OK) << client.message();
    ASSERT_EQ(client.finish(), SHF_OK) << client.message();
    const auto samples = samples_of({folder / "u.tar"});
    ASSERT_EQ(samples.size(), 2U);
    EXPECT_EQ(samples[0], "a x=bytes of a file");
    EXPECT_EQ(samples[1].size(), std::string("b x=").size() + 1'000'000);
}

TEST_F(Writer, a_file_that_changes_costs_its_sample_alone) {
    WriterClient client(folder / "j.tar", {{"write_index", "true"}});
    client.write("a", {{"txt", "1"}});
    folder.write("large", std::string(3 << 20, 'L'));
    for (const size_t size : {size_t{2} << 20, size_t{4} << 20}) {
        ASSERT_EQ(shf_writer_begin(client.writer, "b", 1, &client.error), SHF_OK);
        ASSERT_EQ(shf_writer_field(client.writer, "cls", 3, "7", 1, &client.error), SHF_OK);
        ASSERT_EQ(shf_writer_field_file(client.writer, "jpg", 3, (folder / "large").c_str(),
                                        &client.error),
                  SHF_OK);
        fs::resize_file(folder / "large", size);
        EXPECT_EQ(shf_writer_end(client.writer, &client.error), SHF_E_CHANGED) << client.message();
    }
    ASSERT_EQ(client.write_file("b", "jpg", folder / "large"), SHF_OK) << client.message();
    ASSERT_EQ(client.write("c", {{"txt", "2"}}), SHF_OK) << client.message();
    ASSERT_EQ(client.finish(), SHF_OK) << client.message();
    const auto samples = samples_of({folder / "j.tar"});
    ASSERT_EQ(samples.size(), 3U);
    EXPECT_EQ(samples[1].size(), std::string("b jpg=").size() + (4 << 20));
    EXPECT_EQ(samples[2], "c txt=2");
    const std::string index = bytes_of_file(folder / "j.tar.sfidx");
    ASSERT_EQ(shf_index_build((folder / "j.tar").c_str(), nullptr, nullptr), SHF_OK);
    EXPECT_EQ(index, bytes_of_file(folder / "j.tar.sfidx"));
}

TEST_F(Writer, samples_of_a_stream_are_passed_on) {
    const auto paths = write_shards(folder, {30, 40});
    Client client(paths, {});
    WriterClient writer(folder / "k.zip");
    while (const SampleHandle sample = client.next())
        ASSERT_EQ(shf_writer_write(writer.writer, sample.get(), &writer.error), SHF_OK)
            << writer.message();
    ASSERT_EQ(writer.finish(), SHF_OK) << writer.message();
    EXPECT_EQ(samples_of({folder / "k.zip"}), samples_of(paths));
}

// A limit of the size of files is what a full disk is: a write that takes less, then none.
TEST_F(Writer, a_write_that_fails_is_reported_and_nothing_is_published) {
    const auto before = ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit = {};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
    for (const rlim_t room : {rlim_t{1}, rlim_t{600'000}, rlim_t{1'048'576}, rlim_t{2'500'000}}) {
        for (const char* name : {"l.tar", "l.zip", "l.tar.gz"}) {
            rlimit small = limit;
            small.rlim_cur = room;
            ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
            {
                WriterClient client(folder / name);
                std::mt19937_64 random(1);
                for (int i = 0; i < 100 && client.code == SHF_OK; ++i) {
                    std::string data(40'000, '\0');
                    for (char& c : data) c = static_cast<char>(random());
                    client.write("k" + std::to_string(i), {{"jpg", data}});
                }
                if (client.code == SHF_OK) client.finish();
                EXPECT_EQ(client.code, SHF_E_IO) << name << room << client.message();
                EXPECT_NE(client.message().find(name), std::string::npos) << client.message();
                EXPECT_EQ(client.finish(), SHF_E_IO);
                EXPECT_EQ(shf_writer_shards(client.writer), 0U);
            }
            ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
            EXPECT_TRUE(names_in(folder / "").empty()) << name << room;
        }
    }
    ::signal(SIGXFSZ, before);
}

TEST_F(Writer, a_folder_that_is_not_there_is_named) {
    WriterClient client(folder / "none/m.tar");
    EXPECT_EQ(client.write("a", {{"txt", "1"}}), SHF_E_IO);
    EXPECT_NE(client.message().find("none/m.tar: open its folder"), std::string::npos)
        << client.message();
    EXPECT_NE(client.message().find("make its folder first"), std::string::npos);
}

TEST_F(Writer, calls_after_a_cancel_are_cancelled) {
    WriterClient client(folder / "p.tar");
    ASSERT_EQ(client.write("a", {{"txt", "1"}}), SHF_OK);
    std::thread([&] { shf_writer_cancel(client.writer); }).join();
    EXPECT_EQ(client.write("b", {{"txt", "1"}}), SHF_E_CANCELLED);
    EXPECT_EQ(client.finish(), SHF_E_CANCELLED);
    EXPECT_EQ(shf_writer_shards(client.writer), 0U);
}

TEST_F(Writer, a_key_whose_sample_failed_comes_again_once) {
    folder.write("large", std::string(3 << 20, 'L'));
    WriterClient client(folder / "q.tar");
    const auto fails = [&](std::string_view key) {
        EXPECT_EQ(shf_writer_begin(client.writer, key.data(), key.size(), nullptr), SHF_OK);
        EXPECT_EQ(
            shf_writer_field_file(client.writer, "jpg", 3, (folder / "large").c_str(), nullptr),
            SHF_OK);
        fs::resize_file(folder / "large", fs::file_size(folder / "large") + 1);
        return shf_writer_end(client.writer, &client.error);
    };
    ASSERT_EQ(client.write("a", {{"txt", "1"}}), SHF_OK);
    EXPECT_EQ(fails("z"), SHF_E_CHANGED);
    EXPECT_EQ(client.write("z", {{"txt", "1"}}), SHF_OK) << client.message();
    EXPECT_EQ(client.write("y", {{"txt", "1"}}), SHF_OK) << client.message();
    EXPECT_EQ(client.write("z", {{"txt", "1"}}), SHF_E_USAGE);
    EXPECT_EQ(fails("b"), SHF_E_CHANGED);
    EXPECT_EQ(client.write("b", {{"txt", "1"}}), SHF_OK) << client.message();
    EXPECT_EQ(client.write("b2", {{"txt", "1"}}), SHF_OK) << client.message();
    EXPECT_EQ(client.write("b", {{"txt", "1"}}), SHF_E_USAGE);
    ASSERT_EQ(client.finish(), SHF_OK) << client.message();
    EXPECT_EQ(samples_of({folder / "q.tar"}).size(), 5U);
}

TEST_F(Writer, a_shard_whose_only_sample_failed_is_none) {
    folder.write("large", std::string(3 << 20, 'L'));
    for (const char* name : {"r.tar", "r.zip"}) {
        WriterClient client(folder / name);
        for (int i = 0; i < 2; ++i) {
            ASSERT_EQ(shf_writer_begin(client.writer, "a", 1, nullptr), SHF_OK);
            ASSERT_EQ(shf_writer_field_file(client.writer, "jpg", 3, (folder / "large").c_str(),
                                            &client.error),
                      SHF_OK);
            fs::resize_file(folder / "large", static_cast<uintmax_t>((70 << 20) + i));
            if (i == 0 && std::string_view(name) == "r.zip") {  // it was read at once
                ASSERT_EQ(shf_writer_begin(client.writer, "b", 1, nullptr), SHF_OK);
                continue;
            }
            EXPECT_EQ(shf_writer_end(client.writer, &client.error), SHF_E_CHANGED);
        }
        ASSERT_EQ(shf_writer_next_shard(client.writer, &client.error), SHF_OK);
        ASSERT_EQ(client.finish(), SHF_OK) << client.message();
        EXPECT_EQ(shf_writer_shards(client.writer), 0U);
        EXPECT_FALSE(fs::exists(folder / name));
        fs::resize_file(folder / "large", 3 << 20);
    }
}

TEST_F(Writer, shards_are_where_they_were_to_be_after_a_change_of_folder) {
    const fs::path before = fs::current_path();
    fs::current_path(folder / "");
    WriterClient client("s-%d.tar", {{"write_index", "true"}, {"max_samples", "1"}});
    client.write("a", {{"txt", "1"}});
    fs::current_path(before);
    client.write("b", {{"txt", "1"}});
    EXPECT_EQ(client.finish(), SHF_OK) << client.message();
    EXPECT_EQ(names_in(folder / ""),
              (std::vector<std::string>{"s-0.tar", "s-0.tar.sfidx", "s-1.tar", "s-1.tar.sfidx"}));
    EXPECT_EQ(client.shard(0), "s-0.tar");
}

// The index of a shard that somebody else has published stays.
TEST_F(Writer, two_writers_of_one_name) {
    WriterClient first(folder / "t.tar", {{"write_index", "true"}});
    WriterClient second(folder / "t.tar", {{"write_index", "true"}});
    first.write("a", {{"txt", "1"}});
    second.write("b", {{"txt", "2"}});
    ASSERT_EQ(first.finish(), SHF_OK) << first.message();
    const std::string index = bytes_of_file(folder / "t.tar.sfidx");
    EXPECT_EQ(second.finish(), SHF_E_IO);
    EXPECT_EQ(second.error.os_error, EEXIST);
    EXPECT_EQ(bytes_of_file(folder / "t.tar.sfidx"), index);
}

TEST_F(Writer, borrowed_fields_are_what_they_are_when_the_sample_ends) {
    std::string small = "1", large(200'000, 'x'), name = "jpg";
    for (const char* shard : {"borrowed.tar", "borrowed.zip", "borrowed.tar.zst"}) {
        WriterClient client(folder / shard);
        ASSERT_EQ(shf_writer_begin(client.writer, "a", 1, nullptr), SHF_OK);
        ASSERT_EQ(shf_writer_field_borrowed(client.writer, name.data(), name.size(), large.data(),
                                            large.size(), nullptr),
                  SHF_OK);
        ASSERT_EQ(shf_writer_field(client.writer, "cls", 3, small.data(), 1, nullptr), SHF_OK);
        ASSERT_EQ(
            shf_writer_field_borrowed(client.writer, "txt", SHF_STRLEN, small.data(), 1, nullptr),
            SHF_OK);
        small[0] = '2';  // the copy stays
        large[100'000] = 'y';
        ASSERT_EQ(shf_writer_end(client.writer, &client.error), SHF_OK) << client.message();
        ASSERT_EQ(client.write("b", {{"txt", "after"}}), SHF_OK);
        ASSERT_EQ(client.finish(), SHF_OK) << client.message();
        const auto samples = samples_of({folder / shard});
        ASSERT_EQ(samples.size(), 2U);
        EXPECT_EQ(samples[0], "a jpg=" + large + " cls=1 txt=2");
        small[0] = '1';
        large[100'000] = 'x';
    }
    WriterClient client(folder / "none.tar");
    ASSERT_EQ(shf_writer_begin(client.writer, "a", 1, nullptr), SHF_OK);
    EXPECT_EQ(shf_writer_field_borrowed(client.writer, "jpg", 3, nullptr, 5, nullptr), SHF_E_USAGE);
    EXPECT_EQ(shf_writer_end(client.writer, nullptr), SHF_E_USAGE);
}

TEST_F(Writer, arguments_that_are_null_drop_the_sample) {
    WriterClient client(folder / "u.tar");
    ASSERT_EQ(shf_writer_begin(client.writer, "a", 1, nullptr), SHF_OK);
    ASSERT_EQ(shf_writer_field(client.writer, "cls", 3, "1", 1, nullptr), SHF_OK);
    EXPECT_EQ(shf_writer_field(client.writer, "jpg", 3, nullptr, 5, nullptr), SHF_E_USAGE);
    EXPECT_EQ(shf_writer_end(client.writer, &client.error), SHF_E_USAGE);
    ASSERT_EQ(client.finish(), SHF_OK);
    EXPECT_EQ(shf_writer_shards(client.writer), 0U);
}

TEST_F(Writer, files_whose_size_is_not_said_are_refused) {
    WriterClient client(folder / "v.tar");
    EXPECT_EQ(client.write_file("a", "txt", "/proc/self/status"), SHF_E_CHANGED);
    EXPECT_NE(client.message().find("more bytes than its size"), std::string::npos);
}

TEST_F(Writer, digests_are_those_of_the_files) {
    WriterClient client(folder / "n.tar");
    client.write("a", {{"txt", "1"}});
    client.finish();
    EXPECT_EQ(client.shard(0, SHF_SHARD_DIGEST).size(), 32U);
    WriterClient again(folder / "o.tar");
    again.write("a", {{"txt", "1"}});
    again.finish();
    EXPECT_EQ(client.shard(0, SHF_SHARD_DIGEST), again.shard(0, SHF_SHARD_DIGEST));
    EXPECT_EQ(client.info(0, SHF_SHARD_PAYLOAD), 1U);
    EXPECT_EQ(client.info(1, SHF_SHARD_BYTES), UINT64_MAX);
    EXPECT_EQ(client.shard(0, SHF_SHARD_INDEX), "");
    // As it always was: headers have nothing of this machine or this day.
    EXPECT_EQ(client.shard(0, SHF_SHARD_DIGEST), "e82fc83296452490c90480ddb80fc4c9");
}

}  // namespace
