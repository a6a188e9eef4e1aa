// The options that leave out fields and samples without reading them: fields, select_keys, slice.
#include "dataset_builder.h"
#include "filter_encoders.h"
#include "zip_encoders.h"

#include "dataset/dataset.h"

#include <algorithm>
#include <clocale>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace shf::test {
namespace {

// "key{name=bytes name=bytes}" of each sample, as next() gives them.
std::vector<std::string> samples_of(Client& client) {
    std::vector<std::string> out;
    while (const SampleHandle sample = client.next()) {
        std::string text = key_of(sample.get()) + '{';
        for (size_t i = 0; i < shf_sample_field_count(sample.get()); ++i) {
            shf_bytes name, data;
            EXPECT_EQ(shf_sample_field(sample.get(), i, &name, &data), SHF_OK);
            text += (i == 0 ? "" : " ") + text_of(name) + '=' + text_of(data).substr(0, 20);
        }
        out.push_back(text + '}');
    }
    return out;
}

using List = std::vector<std::string>;

// Bytes that this process has asked the system for with read() and its like.
uint64_t bytes_read() {
    std::ifstream file("/proc/self/io");
    std::string name;
    uint64_t value = 0;
    file >> name >> value;
    EXPECT_EQ(name, "rchar:");
    return value;
}

class EngineFilter : public testing::Test {
  protected:
    // The same members in a tar, a compressed tar and a ZIP file.
    std::vector<std::string> shards_of(const NamedBytes& members) {
        Zip zip;
        for (const auto& [name, bytes] : members)
            zip.entries.push_back(packed_entry(name, zip_deflate, bytes));
        directory.write("s.zip", zip.bytes());
        directory.write("s.tar", tar_of_members(members));
        directory.write("s.tar.gz", gzip(tar_of_members(members)));
        return {directory / "s.tar", directory / "s.tar.gz", directory / "s.zip"};
    }
    // What every one of these shards gives, which must be the same, and its end.
    List all_of(const NamedBytes& members, const Settings& settings, int32_t end = SHF_END) {
        List first;
        for (const std::string& url : shards_of(members)) {
            Client client(url, settings);
            const List seen = samples_of(client);
            EXPECT_EQ(client.code, end) << url << client.message();
            filtered = client.stat(SHF_STAT_FILTERED_SAMPLES);
            if (url.ends_with(".tar")) first = seen;
            EXPECT_EQ(seen, first) << url;
        }
        return first;
    }
    // What opening says of an option's value.
    std::string refusal(const std::string& option, const std::string& value) {
        directory.write("one.tar", shard_bytes(0, 1));
        Client client(directory / "one.tar", {{option, value}});
        EXPECT_EQ(client.code, SHF_E_USAGE) << value;
        return client.message();
    }

    uint64_t filtered = 0;
    const Watchdog watchdog{300};
    const TempDirectory directory;
};

const NamedBytes three = {{"a.JPG", "A"}, {"a.cls", "1"}, {"a.Seg.PNG", "sa"}, {"b/c.txt", "t"},
                          {"b/c.", "n"},  {"d.cls", "3"}, {"d.json", "{...}"}};

// ---- fields -------------------------------------------------------------------------------------

TEST_F(EngineFilter, fields_keeps_what_it_names) {
    EXPECT_EQ(all_of(three, {}),
              (List{"a{jpg=A cls=1 seg.png=sa}", "b/c{txt=t =n}", "d{cls=3 json={...}}"}));
    EXPECT_EQ(filtered, 0U);
    EXPECT_EQ(all_of(three, {{"fields", "cls"}}), (List{"a{cls=1}", "d{cls=3}"}));
    EXPECT_EQ(filtered, 1U);
    // In any case, in the order of the shard.
    EXPECT_EQ(all_of(three, {{"fields", " Seg.png , JPG,jpg"}}), (List{"a{jpg=A seg.png=sa}"}));
    EXPECT_EQ(filtered, 2U);
    EXPECT_EQ(all_of(three, {{"fields", "png"}}), List{});
    EXPECT_EQ(filtered, 3U);
    EXPECT_EQ(all_of(three, {{"fields", ""}}).size(), 3U);
}

TEST_F(EngineFilter, blocks_batches_and_shuffled_streams_have_the_same_samples) {
    NamedBytes members;
    for (int i = 0; i < 1000; ++i) {
        const std::string key = std::to_string(i);
        members.emplace_back(key + ".cls", key);
        if (i % 2 == 0) members.emplace_back(key + ".txt", key);
    }
    for (const std::string& url : shards_of(members)) {
        List expected;
        for (int i = 100; i < 1000; i += 10) expected.push_back(std::to_string(i));
        const Settings settings{
            {"fields", "txt"}, {"slice", "0:1000:5"}, {"select_keys", "[1-9]??"}};
        Client blocks(url, settings);
        EXPECT_EQ(blocks.block_keys(), expected);
        Client shuffled(url, settings + Settings{{"shuffle", "20"}});
        List keys = shuffled.keys();
        EXPECT_NE(keys, expected);
        std::sort(keys.begin(), keys.end());
        EXPECT_EQ(keys, expected);
        EXPECT_EQ(shuffled.stat(SHF_STAT_FILTERED_SAMPLES), 910U);

        Client batches(url, settings + Settings{{"batch", "64"}});
        shf_batch* batch = nullptr;
        size_t rows = 0;
        while ((batches.code = shf_stream_next_batch(batches.stream, &batch, &batches.error)) ==
               SHF_OK) {
            EXPECT_EQ(shf_batch_column_count(batch), 3U);  // txt, __key__, __url__
            rows += shf_batch_row_count(batch);
            shf_batch_unref(batch);
        }
        EXPECT_EQ(batches.code, SHF_END) << batches.message();
        EXPECT_EQ(rows, 90U);
    }
}

TEST_F(EngineFilter, what_is_wrong_with_unwanted_members_does_not_matter) {
    const std::string tar = member("a.jpg", "1") + member("a.txt", "x") + member("a.jpg", "2") +
                            sparse_old_gnu("a.bin") + member("b.txt", "y") + end_marker();
    directory.write("t.tar", tar);
    Client client(directory / "t.tar", {{"fields", "txt"}});
    EXPECT_EQ(samples_of(client), (List{"a{txt=x}", "b{txt=y}"}));
    EXPECT_EQ(client.code, SHF_END) << client.message();
    Client twice(directory / "t.tar", {{"fields", "txt,jpg"}});
    EXPECT_EQ(samples_of(twice), List{});
    EXPECT_EQ(twice.code, SHF_E_AMBIGUOUS) << twice.message();
    Client sparse(directory / "t.tar", {{"fields", "txt,bin"}});
    EXPECT_EQ(samples_of(sparse), List{});
    EXPECT_EQ(sparse.code, SHF_E_UNSUPPORTED) << sparse.message();

    // The limits are for what is read.
    const NamedBytes large{{"a.jpg", std::string(3 << 20, 'j')}, {"a.txt", "x"}};
    const Settings limits{{"max_member", "1000"}, {"memory", "1MiB"}};
    EXPECT_EQ(all_of(large, limits + Settings{{"fields", "txt"}}), List{"a{txt=x}"});
    EXPECT_EQ(all_of(large, limits, SHF_E_LIMIT), List{});
}

TEST_F(EngineFilter, unwanted_entries_of_a_zip_are_not_read) {
    Zip zip;
    zip.entries = {{.name = "a.jpg", .data = "damaged", .crc = 1},
                   {.name = "a.txt", .data = "x"},
                   {.name = "b.txt", .data = "y"},
                   {.name = "b.zzz", .data = "also damaged", .crc = 1}};
    directory.write("t.zip", zip.bytes());
    Client client(directory / "t.zip", {{"fields", "txt"}});
    EXPECT_EQ(samples_of(client), (List{"a{txt=x}", "b{txt=y}"}));
    EXPECT_EQ(client.code, SHF_END) << client.message();
    Client other(directory / "t.zip", {{"select_keys", "b"}, {"fields", "txt,jpg"}});
    EXPECT_EQ(samples_of(other), List{"b{txt=y}"});
    EXPECT_EQ(other.code, SHF_END) << other.message();
    Client first(directory / "t.zip", {{"slice", "1:"}, {"fields", "txt,jpg"}});
    EXPECT_EQ(samples_of(first), List{"b{txt=y}"});
    Client read(directory / "t.zip", {{"fields", "txt,jpg"}});
    EXPECT_EQ(samples_of(read), List{});
    EXPECT_EQ(read.code, SHF_E_INTEGRITY) << read.message();
}

// The directory says that nobody wants the entry, its own header says that somebody does.
TEST_F(EngineFilter, an_unwanted_entry_under_another_name_is_an_error) {
    for (const char* name : {"a.TXT", "b.txt"}) {
        Zip zip;
        zip.entries = {{.name = "a.jpg", .data = "j"},
                       {.name = "a.zzz", .data = "x"},
                       {.name = "b.jpg", .data = "j"}};
        zip.entries[1].local = [&](LocalHeader& header) { header.name = name; };
        directory.write("t.zip", zip.bytes());
        for (const Settings& settings :
             {Settings{{"fields", "jpg,txt"}}, Settings{{"select_keys", "b"}},
              Settings{{"slice", "1:"}}}) {
            Client client(directory / "t.zip", settings);
            (void)samples_of(client);
            EXPECT_EQ(client.code, SHF_E_AMBIGUOUS) << client.message();
        }
    }
}

// ---- Bytes --------------------------------------------------------------------------------------

TEST_F(EngineFilter, large_members_that_are_not_wanted_are_not_read) {
    const std::string large(8 << 20, 'l');
    NamedBytes members;
    for (int i = 0; i < 8; ++i) {
        const std::string key = std::to_string(i);
        // Before, between and behind the small ones.
        members.insert(members.end(), {{key + ".a", ""},
                                       {key + ".aaa", large},
                                       {key + ".bbb", "b" + key},
                                       {key + ".ccc", large},
                                       {key + ".ddd", "d" + key},
                                       {key + ".eee", large}});
    }
    Zip zip;
    for (const auto& [name, bytes] : members) zip.entries.push_back({.name = name, .data = bytes});
    directory.write("l.tar", tar_of_members(members));
    directory.write("l.zip", zip.bytes());
    const auto read_by = [&](const std::string& url, const Settings& settings, size_t expected) {
        const uint64_t before = bytes_read();
        Client client(url, settings + Settings{{"threads", "1"}});
        EXPECT_EQ(samples_of(client).size(), expected);
        EXPECT_EQ(client.code, SHF_END) << client.message();
        return bytes_read() - before;
    };
    for (const char* name : {"l.tar", "l.zip"}) {
        const std::string url = directory / name;
        EXPECT_GT(read_by(url, {}, 8), uint64_t{24} * large.size());
        EXPECT_LT(read_by(url, {{"fields", "bbb,ddd"}}, 8), large.size()) << name;
        EXPECT_LT(read_by(url, {{"fields", "a"}}, 8), large.size()) << name;
        EXPECT_LT(read_by(url, {{"fields", "zzz"}}, 0), large.size()) << name;
        EXPECT_LT(read_by(url, {{"select_keys", "none"}}, 0), large.size()) << name;
        EXPECT_LT(read_by(url, {{"slice", "3:4"}}, 1), 4 * large.size()) << name;
    }
    for (const char* name : {"l.tar", "l.zip"}) {
        Client client(directory / name, {{"fields", "bbb,ddd"}, {"slice", "2:4"}});
        EXPECT_EQ(samples_of(client), (List{"2{bbb=b2 ddd=d2}", "3{bbb=b3 ddd=d3}"}));
    }
    Client empty(directory / "l.tar", {{"fields", "a,ddd"}, {"slice", "6:7"}});
    EXPECT_EQ(samples_of(empty), List{"6{a= ddd=d6}"});
    // Some large ones of a sample, with the others between them.
    Client client(directory / "l.tar", {{"fields", "aaa,ddd,eee"}, {"memory", "32MiB"}});
    size_t count = 0;
    while (const SampleHandle sample = client.next()) {
        shf_bytes a, d, e;
        ASSERT_EQ(shf_sample_find(sample.get(), "aaa", 3, &a), SHF_OK);
        ASSERT_EQ(shf_sample_find(sample.get(), "ddd", 3, &d), SHF_OK);
        ASSERT_EQ(shf_sample_find(sample.get(), "eee", 3, &e), SHF_OK);
        EXPECT_TRUE(text_of(a) == large);
        EXPECT_EQ(text_of(d), "d" + key_of(sample.get()));
        EXPECT_TRUE(text_of(e) == large);
        ++count;
    }
    EXPECT_EQ(client.code, SHF_END) << client.message();
    EXPECT_EQ(count, 8U);
}

TEST_F(EngineFilter, the_end_of_the_shard_is_proven_all_the_same) {
    const std::string bytes = shard_bytes(0, 20, 700000);
    directory.write("cut.tar", std::string_view(bytes).substr(0, bytes.size() - 1024));
    directory.write("short.tar", std::string_view(bytes).substr(0, bytes.size() - 100000));
    for (const char* name : {"cut.tar", "short.tar"})
        for (const Settings& settings :
             {Settings{{"slice", "0:2"}}, Settings{{"select_keys", "s000-0000[01]"}}}) {
            Client client(directory / name, settings);
            EXPECT_EQ(client.keys(), (List{sample_key(0, 0), sample_key(0, 1)}));
            EXPECT_EQ(client.code, SHF_E_TRUNCATED) << client.message();
        }
}

// ---- select_keys --------------------------------------------------------------------------------

TEST_F(EngineFilter, keys_are_matched_as_the_shell_does) {
    const List keys{"a", "a/b", "a/b,c", "a[1]", "b-1", "b-2", "b-10", "c\xc3\xa9", "c\xff", "c*d"};
    NamedBytes members;
    for (const std::string& key : keys) members.emplace_back(key + ".txt", key);
    const auto selected = [&](const char* patterns) {
        List out;
        for (const std::string& sample : all_of(members, {{"select_keys", patterns}}))
            out.push_back(sample.substr(0, sample.find('{')));
        EXPECT_EQ(filtered, keys.size() - out.size());
        return out;
    };
    EXPECT_EQ(selected("a"), List{"a"});
    EXPECT_EQ(selected(""), keys);
    EXPECT_EQ(selected("*"), keys);
    EXPECT_EQ(selected("a*"), (List{"a", "a/b", "a/b,c", "a[1]"}));
    EXPECT_EQ(selected("a?b"), List{"a/b"});
    EXPECT_EQ(selected("b-?,a"), (List{"a", "b-1", "b-2"}));
    EXPECT_EQ(selected("b-[!1]"), List{"b-2"});
    EXPECT_EQ(selected("b-[0-9][0-9]"), List{"b-10"});
    EXPECT_EQ(selected("[[:alpha:]]"), List{"a"});
    // Commas and marks themselves.
    EXPECT_EQ(selected("a/b\\,c"), List{"a/b,c"});
    EXPECT_EQ(selected("a/b[,]c"), List{"a/b,c"});
    EXPECT_EQ(selected("a\\[1]"), List{"a[1]"});
    EXPECT_EQ(selected("c\\*d"), List{"c*d"});
    EXPECT_EQ(selected("*[]]"), List{"a[1]"});
    EXPECT_EQ(selected("A,B"), List{});
    // Bytes, whether they are text or not.
    EXPECT_EQ(selected("c?"), List{"c\xff"});
    EXPECT_EQ(selected("c??"), (List{"c\xc3\xa9", "c*d"}));
    EXPECT_EQ(selected("c\xff"), List{"c\xff"});
}

TEST_F(EngineFilter, the_locale_of_the_program_does_not_matter) {
    ASSERT_NE(std::setlocale(LC_ALL, "C.UTF-8"), nullptr);
    const NamedBytes members{{"c\xc3\xa9.txt", "1"}, {"c\xff.txt", "2"}, {"d.txt", "3"}};
    EXPECT_EQ(all_of(members, {{"select_keys", "c?"}}), List{"c\xff{txt=2}"});
    EXPECT_EQ(all_of(members, {{"select_keys", "c*"}}), (List{"c\xc3\xa9{txt=1}", "c\xff{txt=2}"}));
    std::setlocale(LC_ALL, "C");
}

// ---- slice --------------------------------------------------------------------------------------

TEST_F(EngineFilter, slices_are_those_of_python) {
    NamedBytes members;
    for (char c = 'a'; c <= 'j'; ++c)
        members.insert(members.end(), {{c + std::string(".x"), ""}, {c + std::string(".y"), ""}});
    const auto sliced = [&](const char* slice) {
        std::string out;
        for (const std::string& sample : all_of(members, {{"slice", slice}})) {
            EXPECT_EQ(sample.substr(1), "{x= y=}");
            out += sample[0];
        }
        EXPECT_EQ(filtered, 10 - out.size());
        return out;
    };
    EXPECT_EQ(sliced(":"), "abcdefghij");
    EXPECT_EQ(sliced("::"), "abcdefghij");
    EXPECT_EQ(sliced("3:"), "defghij");
    EXPECT_EQ(sliced(":3"), "abc");
    EXPECT_EQ(sliced("2:5"), "cde");
    EXPECT_EQ(sliced("2:9:3"), "cfi");
    EXPECT_EQ(sliced("::4"), "aei");
    EXPECT_EQ(sliced("1::4"), "bfj");
    EXPECT_EQ(sliced(":7:4"), "ae");
    EXPECT_EQ(sliced("9:100"), "j");
    EXPECT_EQ(sliced("10:"), "");
    EXPECT_EQ(sliced("5:5"), "");
    EXPECT_EQ(sliced("5:2"), "");
    EXPECT_EQ(sliced("0:18446744073709551615:18446744073709551615"), "a");
}

TEST_F(EngineFilter, numbers_count_all_samples_of_the_shard) {
    // Sample 1 is bad, member "z" has no key.
    directory.write("t.tar", member("a.txt", "a") + member("b.txt", "b") + member("b.txt", "b") +
                                 member("z", "") + member("c.txt", "c") + member("d.txt", "d") +
                                 end_marker());
    const auto keys = [&](const Settings& settings) {
        Client client(directory / "t.tar", settings + Settings{{"on_error", "skip_sample"}});
        const List out = client.keys();
        EXPECT_EQ(client.code, SHF_END) << client.message();
        return out;
    };
    EXPECT_EQ(keys({}), (List{"a", "c", "d"}));
    EXPECT_EQ(keys({{"slice", "2:3"}}), List{"c"});
    EXPECT_EQ(keys({{"slice", "1:3"}}), List{"c"});
    EXPECT_EQ(keys({{"slice", "0:3"}, {"select_keys", "[cd]"}}), List{"c"});
    // A bad sample that nobody wants is not bad.
    Client client(directory / "t.tar", {{"slice", "2:"}});
    EXPECT_EQ(client.keys(), (List{"c", "d"}));
    EXPECT_EQ(client.code, SHF_END) << client.message();
}

TEST_F(EngineFilter, a_slice_is_of_each_shard_for_every_number_of_consumers) {
    write_shards(directory, {10, 3, 20, 5});
    List urls, expected;
    const std::vector<uint64_t> sizes{10, 3, 20, 5};
    for (uint64_t s = 0; s < sizes.size(); ++s) {
        urls.push_back(directory / ("00" + std::to_string(s) + ".tar"));
        for (uint64_t i = 2; i < std::min<uint64_t>(sizes[s], 15); i += 4)
            expected.push_back(sample_key(s, i));
    }
    for (const char* threads : {"1", "4"})
        for (const char* world : {"1", "2", "4"}) {
            List keys;
            for (int rank = 0; rank < std::atoi(world); ++rank) {
                Client client(urls, {{"slice", "2:15:4"},
                                     {"threads", threads},
                                     {"world_size", world},
                                     {"rank", std::to_string(rank)},
                                     {"lanes", "4"}});
                for (const std::string& key : client.keys()) keys.push_back(key);
                EXPECT_EQ(client.code, SHF_END) << client.message();
            }
            std::sort(keys.begin(), keys.end());
            EXPECT_EQ(keys, expected);
        }
}

// ---- Shards that are not as they should be ------------------------------------------------------

TEST_F(EngineFilter, keys_that_come_again_are_found_among_unwanted_samples) {
    const NamedBytes by_suffix{{"a.cls", "1"}, {"b.cls", "2"}, {"a.txt", "x"}, {"b.txt", "y"}};
    for (const Settings& settings :
         {Settings{{"fields", "txt"}}, Settings{{"fields", "cls"}}, Settings{{"slice", "0:1"}},
          Settings{{"slice", "2:3"}}, Settings{{"select_keys", "a"}}}) {
        (void)all_of(by_suffix, settings, SHF_E_AMBIGUOUS);
        (void)all_of(by_suffix, settings + Settings{{"duplicate_keys", "accept"}});
    }
    EXPECT_EQ(all_of(by_suffix, {{"fields", "txt"}, {"duplicate_keys", "accept"}}),
              (List{"a{txt=x}", "b{txt=y}"}));
}

TEST_F(EngineFilter, a_shard_with_nothing_that_is_wanted_is_not_empty) {
    write_shards(directory, {10, 20});
    directory.write("empty.tar", end_marker());
    Client client({directory / "000.tar", directory / "001.tar"}, {{"slice", "15:"}});
    EXPECT_EQ(client.keys().size(), 5U);
    EXPECT_EQ(client.code, SHF_END) << client.message();
    EXPECT_EQ(client.stat(SHF_STAT_EMPTY_SHARDS), 0U);
    EXPECT_EQ(client.stat(SHF_STAT_FILTERED_SAMPLES), 25U);
    Client empty(directory / "empty.tar", {{"slice", "15:"}});
    EXPECT_EQ(empty.keys().size(), 0U);
    EXPECT_EQ(empty.code, SHF_E_FORMAT) << empty.message();
    Client endless(directory / "000.tar", {{"select_keys", "none"}, {"epochs", "0"}});
    EXPECT_EQ(endless.keys().size(), 0U);
    EXPECT_EQ(endless.code, SHF_E_FORMAT);
    EXPECT_NE(endless.message().find("select_keys"), std::string::npos) << endless.message();
}

TEST_F(EngineFilter, no_index_is_left_by_a_filtered_pass) {
    write_shards(directory, {10});
    for (const Settings& settings : {Settings{{"fields", "txt"}}, Settings{{"slice", "1:"}},
                                     Settings{{"select_keys", "s*"}}}) {
        Client client(directory / "000.tar", settings + Settings{{"write_index", "true"}});
        EXPECT_GE(client.keys().size(), 9U);
        EXPECT_EQ(client.code, SHF_END) << client.message();
        EXPECT_FALSE(std::filesystem::exists(directory / "000.tar.sfidx"));
    }
    Client client(directory / "000.tar", {{"slice", "::1"}, {"write_index", "true"}});
    EXPECT_EQ(client.keys().size(), 10U);
    EXPECT_TRUE(std::filesystem::exists(directory / "000.tar.sfidx"));
}

TEST_F(EngineFilter, bad_values_are_pointed_at_when_the_stream_is_opened) {
    const auto says = [&](const char* option, const char* value, const char* part) {
        const std::string message = refusal(option, value);
        EXPECT_NE(message.find(part), std::string::npos) << message;
        EXPECT_NE(message.find("help: give "), std::string::npos) << message;
    };
    says("fields", "jpg,,cls", "option fields: character 5: no field name in \"jpg, >>> ,cls\"");
    says("fields", "jpg, ", "character 6: no field name");
    says("fields", " ", "character 2: no field name");
    says("fields", "jpg/rgb", "character 4: a field name has no slash");
    says("select_keys", "a,,b", "option select_keys: character 3: an empty pattern");
    says("select_keys", "a,", "character 3: an empty pattern");
    says("select_keys", "a,b[0-9", "character 4: a '[' without ']'");
    says("select_keys", "[[:alpha:]", "character 1: a '[' without ']'");
    says("select_keys", "[a\\]", "character 1: a '[' without ']'");
    says("select_keys", "ab\\", "character 3: a backslash with nothing after it");
    says("slice", "5", "option slice: character 2: no colon in \"5 >>> \"");
    says("slice", "-5:", "character 1: not a whole number from 0 up");
    says("slice", "1:-2", "character 3: not a whole number from 0 up");
    says("slice", "1:2x", "character 4: not a whole number from 0 up in \"1:2 >>> x\"");
    says("slice", "1 :2", "character 2: not a whole number");
    says("slice", "::0", "character 3: a step of 0");
    says("slice", "1:2:3:4", "character 6: more than three parts");
    says("slice", "1:18446744073709551616", "character 3: a number too large");
}

// ---- Datasets -----------------------------------------------------------------------------------

TEST_F(EngineFilter, datasets_read_the_wanted_fields_alone) {
    const std::string large(1 << 20, 'l');
    const NamedBytes members{{"a.JPG", large}, {"a.cls", "1"},  {"a.seg.png", large},
                             {"a.txt", "A"},   {"b.cls", "2"},  {"c.jpg", "j"},
                             {"d.cls", "4"},   {"d.jpg", large}};
    std::string long_names;  // headers that only the walker reads
    for (const auto& [name, bytes] : members) {
        const std::string path = std::string(120, 'p') + "/" + name;
        long_names += gnu_name(path) + member("x", bytes, Carrier::gnu);
    }
    directory.write("long.tar", long_names + end_marker());
    directory.write("m.tar", tar_of_members(members));
    directory.write("m.zip", stored_zip(members));
    for (const char* name : {"m.tar", "long.tar", "m.zip"}) {
        const auto fields_of = [](const SampleHandle& sample) {
            std::string out;
            for (size_t i = 0; sample && i < shf_sample_field_count(sample.get()); ++i) {
                shf_bytes field, data;
                EXPECT_EQ(shf_sample_field(sample.get(), i, &field, &data), SHF_OK);
                out += text_of(field) + "=" + text_of(data).substr(0, 3) + " ";
            }
            return out;
        };
        Samples samples(directory / name, {{"fields", "TXT,cls"}});
        ASSERT_EQ(samples.code, SHF_OK) << samples.message();
        EXPECT_EQ(samples.count(), 4U);
        const uint64_t before = bytes_read();
        EXPECT_EQ(fields_of(samples.get(0)), "cls=1 txt=A ") << name;
        EXPECT_EQ(fields_of(samples.get(1)), "cls=2 ");
        EXPECT_EQ(fields_of(samples.get(2)), "");
        EXPECT_EQ(samples.code, SHF_OK) << samples.message();
        EXPECT_EQ(fields_of(samples.get(3)), "cls=4 ");
        EXPECT_LT(bytes_read() - before, large.size() / 2) << name;
        EXPECT_TRUE(samples.texts({3, 2, 1})[1].find("/c of ") != std::string::npos ||
                    samples.texts({3, 2, 1})[1].starts_with("c of "));
        EXPECT_EQ(samples.find(key_of(samples.get(2).get())), 2U);  // its key is there
        // The index is that of all fields.
        Samples all(directory / name);
        EXPECT_EQ(fields_of(all.get(0)), "jpg=lll cls=1 seg.png=lll txt=A ");
        EXPECT_EQ(fields_of(all.get(2)), "jpg=j ");
        Samples bad(directory / name, {{"fields", "a,"}});
        EXPECT_EQ(bad.code, SHF_E_USAGE);
    }
    // Limits are for what is read.
    Samples small(directory / "m.tar", {{"fields", "cls"}, {"max_sample", "10"}});
    EXPECT_TRUE(small.get(0)) << small.message();
    Samples unlimited(directory / "m.tar", {{"max_sample", "10"}});
    EXPECT_FALSE(unlimited.get(0));
}

// What lies between wanted fields is not read where it is long, and counted where it is read along.
TEST_F(EngineFilter, many_samples_of_a_dataset_share_memory_with_their_wanted_fields_alone) {
    NamedBytes members;
    for (size_t i = 0; i < 300; ++i) {
        const std::string key = numbered("k", i);
        if (i % 5 == 0) members.emplace_back(key + ".jpg", std::string(20000, 'j'));
        if (i % 7 != 0) members.emplace_back(key + ".cls", std::to_string(i));
        members.emplace_back(key + ".seg", std::string(i < 150 ? 3000 : 500, 's'));
        if (i % 7 != 0) members.emplace_back(key + ".txt", std::string(i % 50 == 9 ? 200 : 1, 't'));
        if (i % 11 == 0) members.emplace_back(key + ".wav", std::string(60000, 'w'));
    }
    directory.write("m.tar", tar_of_members(members));
    directory.write("m.zip", stored_zip(members));
    for (const char* name : {"m.tar", "m.zip"}) {
        const std::string url = directory / name;
        Samples some(url, {{"fields", "cls,txt"}}),
            limited(url, {{"fields", "cls,txt"}, {"max_sample", "100"}});
        size_t shared = 0;
        for (size_t step = 1; step <= 5; ++step) {
            std::vector<uint64_t> numbers, good;
            for (uint64_t i = 0; i < 300; i += step) {
                numbers.push_back(i);
                if (i % 50 != 9 || i % 7 == 0) good.push_back(i);
            }
            const uint64_t before = bytes_read();
            const std::vector<std::string> texts = some.texts(numbers);
            EXPECT_LT(bytes_read() - before, 1500000U) << name;
            ASSERT_EQ(texts.size(), numbers.size()) << some.message();
            for (size_t i = 0; i < numbers.size(); ++i) {
                EXPECT_EQ(texts[i], some.text(numbers[i]));
                EXPECT_EQ(texts[i].find(", cls=") == std::string::npos, numbers[i] % 7 == 0);
                EXPECT_EQ(texts[i].find("sss"), std::string::npos);
            }
            EXPECT_EQ(limited.texts(good).size(), good.size()) << limited.message();
            if (good.size() < numbers.size()) {
                EXPECT_TRUE(limited.texts(numbers).empty());
                EXPECT_EQ(limited.code, SHF_E_LIMIT);
            }
            const char* const urls[] = {url.c_str()};
            Options options;
            options.fields = "cls,txt";
            const Dataset data(urls, options);
            std::vector<Sample*> samples(numbers.size());
            data.get_many(numbers, samples);
            for (const Sample* sample : samples) {
                if (sample->block->count == 1) continue;
                EXPECT_LE(sample->block->memory(), 64 * 1024U) << name << " step " << step;
                ++shared;
            }
            for (const Sample* sample : samples) sample->block->unref();
        }
        EXPECT_GT(shared, 500U) << name;
    }
}

TEST_F(EngineFilter, datasets_compare_the_names_of_unwanted_entries) {
    Zip zip;
    zip.entries = {{.name = "a.jpg", .data = "damaged", .crc = 1},
                   {.name = "a.txt", .data = "x"},
                   {.name = "a.zzz", .data = "z"},
                   {.name = "b.txt", .data = "y"}};
    directory.write("t.zip", zip.bytes());
    Samples samples(directory / "t.zip", {{"fields", "txt"}});
    EXPECT_TRUE(samples.get(0)) << samples.message();
    for (const size_t entry : {0U, 2U}) {
        Zip wrong = zip;
        wrong.entries[entry].local = [](LocalHeader& header) { header.name = "b.jpg"; };
        directory.write("t.zip", wrong.bytes());
        Samples other(directory / "t.zip", {{"fields", "txt"}});
        EXPECT_FALSE(other.get(0)) << entry;
        EXPECT_EQ(other.code, SHF_E_AMBIGUOUS) << other.message();
    }
}

}  // namespace
}  // namespace shf::test
