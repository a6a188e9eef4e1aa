// Option map: fields are where they lie in the mapping of their file, and everything else is as it
// is when shards are read.
#include "resume_client.h"
#include "temp_shards.h"
#include "zip_builder.h"

#include <gtest/gtest.h>
#include <shardfeed.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace shf::test;

constexpr size_t large = 300'000;

// Whether this process has the file mapped where `bytes` are.
bool lies_in(const std::string& path, shf_bytes bytes) {
    std::ifstream maps("/proc/self/maps");
    const auto at = reinterpret_cast<uintptr_t>(bytes.data);
    for (std::string line; std::getline(maps, line);) {
        uintptr_t from = 0, to = 0;
        char dash = 0;
        std::istringstream(line) >> std::hex >> from >> dash >> to;
        if (from <= at && at + bytes.size <= to) return line.ends_with(path);
    }
    return false;
}

shf_bytes text_field(const shf_sample* sample) {
    shf_bytes text = {};
    EXPECT_EQ(shf_sample_find(sample, "txt", 3, &text), SHF_OK);
    return text;
}

// Samples of very different sizes, with members between that belong to none.
std::string mixed_shard(uint64_t shard, size_t samples) {
    constexpr size_t sizes[] = {0, 100, 3000, 70'000, 200, 1'000'000, 40, 300'000};
    std::string bytes;
    for (uint64_t i = 0; i < samples; ++i) {
        bytes += sample_members(shard, i, sizes[i % std::size(sizes)]);
        if (i % 5 == 0) bytes += member(".hidden", std::string(90'000, 'h'));
    }
    return bytes + end_marker();
}

std::string stored_zip(uint64_t shard, size_t samples, size_t size) {
    Zip zip;
    for (uint64_t i = 0; i < samples; ++i) {
        std::string text = sample_key(shard, i);
        text.resize(std::max(size, text.size()), 'x');
        zip.entries.push_back({.name = sample_key(shard, i) + ".txt", .data = text});
    }
    return zip.bytes();
}

class MappingTest : public testing::Test {
  protected:
    TempDirectory folder;
};

TEST_F(MappingTest, fields_of_a_tar_are_where_the_file_is_mapped) {
    folder.write("a.tar", shard_bytes(0, 20, large));
    for (const char* map : {"true", "false"}) {
        Client client(folder / "a.tar", {{"map", map}});
        const SampleHandle sample = client.next();
        ASSERT_TRUE(sample) << client.message();
        EXPECT_EQ(lies_in(folder / "a.tar", text_field(sample.get())), *map == 't');
    }
}

TEST_F(MappingTest, stored_entries_of_a_zip_are_where_the_file_is_mapped) {
    folder.write("a.zip", stored_zip(0, 20, large));
    Client client(folder / "a.zip", {{"map", "true"}});
    size_t count = 0;
    while (const SampleHandle sample = client.next()) {
        EXPECT_TRUE(lies_in(folder / "a.zip", text_field(sample.get())));
        EXPECT_TRUE(is_whole(sample.get()));
        ++count;
    }
    EXPECT_EQ(client.code, SHF_END) << client.message();
    EXPECT_EQ(count, 20u);
}

TEST_F(MappingTest, a_sample_outlives_its_stream_and_its_file) {
    folder.write("a.tar", shard_bytes(0, 3, large));
    SampleHandle kept;
    {
        Client client(folder / "a.tar", {{"map", "true"}});
        kept = client.next();
    }
    std::filesystem::remove(folder / "a.tar");
    ASSERT_TRUE(kept);
    EXPECT_TRUE(is_whole(kept.get()));
    EXPECT_EQ(text_field(kept.get()).size, large);
}

// The same samples in the same order, from both readings.
TEST_F(MappingTest, samples_and_order_are_those_of_reading) {
    folder.write("0.tar", mixed_shard(0, 60));
    folder.write("1.tar", mixed_shard(1, 33));
    folder.write("2.zip", stored_zip(2, 40, 5000));
    folder.write("3.zip", stored_zip(3, 10, large));
    folder.write("4.tar", shard_bytes(4, 3000, 50));
    std::vector<std::string> urls;
    for (const char* name : {"0.tar", "1.tar", "2.zip", "3.zip", "4.tar"})
        urls.push_back(folder / name);
    const std::vector<Settings> all = {
        {},
        {{"threads", "3"}, {"lanes", "3"}},
        {{"shuffle", "20"}, {"seed", "5"}, {"shuffle_shards", "true"}},
        {{"memory", "2MiB"}},
        {{"select_keys", "*-0000[05]"}},
        {{"slice", "7:50:3"}},
        {{"epochs", "2"}},
    };
    for (const Settings& settings : all) {
        Client read(urls, settings);
        const auto expected = read.keys();
        EXPECT_EQ(read.code, SHF_END) << read.message();
        Client mapped(urls, settings + Settings{{"map", "true"}});
        EXPECT_EQ(mapped.keys(), expected);
        EXPECT_EQ(mapped.code, SHF_END) << mapped.message();
        Client blocks(urls, settings + Settings{{"map", "true"}});
        EXPECT_EQ(blocks.block_keys(), expected);
    }
}

TEST_F(MappingTest, a_state_moves_between_reading_and_mapping) {
    folder.write("0.tar", mixed_shard(0, 60));
    folder.write("1.zip", stored_zip(1, 40, 5000));
    const std::vector<std::string> urls = {folder / "0.tar", folder / "1.zip"};
    const Settings shuffled = {{"shuffle", "10"}, {"seed", "3"}};
    const Settings mapped = shuffled + Settings{{"map", "true"}};
    const auto expected = Client(urls, shuffled).keys();
    for (const size_t stop : {0u, 1u, 17u, 59u, 60u, 83u, 100u}) {
        for (const bool first : {true, false}) {
            Client before(urls, first ? mapped : shuffled);
            auto keys = before.keys(stop);
            const State state = save(before);
            Client after(urls, first ? shuffled : mapped);
            ASSERT_EQ(restore(after, state), SHF_OK) << after.message();
            for (std::string& key : after.keys()) keys.push_back(std::move(key));
            EXPECT_EQ(keys, expected) << "stopped at " << stop;
        }
    }
}

// Readers run no further ahead than with memory of their own.
TEST_F(MappingTest, memory_bounds_what_readers_keep) {
    folder.write("a.tar", shard_bytes(0, 300, large));
    Client client(folder / "a.tar", {{"map", "true"}, {"memory", "8MiB"}, {"threads", "2"}});
    EXPECT_EQ(client.keys().size(), 300u) << client.message();
    EXPECT_LE(client.stat(SHF_STAT_MEMORY_PEAK), uint64_t{8} << 20);
}

TEST_F(MappingTest, batches_are_those_of_reading) {
    folder.write("0.tar", mixed_shard(0, 60));
    const Settings settings = {{"batch", "7"}, {"decode", "txt:bytes"}, {"ragged", "offsets"}};
    const auto rows = [&](const char* map) {
        BatchClient client({folder / "0.tar"}, settings + Settings{{"map", map}});
        std::vector<std::string> texts;
        while (const BatchHandle batch = client.next_batch())
            for (size_t i = 0; i < shf_batch_row_count(batch.get()); ++i)
                texts.push_back(text_of(column(batch, "txt"), i));
        EXPECT_EQ(client.code, SHF_END) << client.message();
        return texts;
    };
    const auto expected = rows("false");
    EXPECT_EQ(expected.size(), 60u);
    EXPECT_EQ(rows("true"), expected);
}

TEST_F(MappingTest, what_cannot_be_mapped_is_read) {
    folder.write("a.tar", shard_bytes(0, 5, 1000));
    const std::string path = folder / "a.tar";
    ASSERT_EQ(std::system(("gzip -kn " + path).c_str()), 0);
    for (const std::string& url : {path + ".gz", "pipe:cat " + path}) {
        Client client(url, {{"map", "true"}});
        EXPECT_EQ(client.keys().size(), 5u) << client.message();
        EXPECT_EQ(client.code, SHF_END);
    }
    folder.write("empty.tar", "");
    folder.write("short.tar", "12345");
    for (const char* name : {"empty.tar", "short.tar"}) {
        Client read(folder / name, {});
        Client mapped(folder / name, {{"map", "true"}});
        EXPECT_EQ(read.keys(), mapped.keys());
        EXPECT_EQ(read.code, mapped.code);
        EXPECT_EQ(read.message(), mapped.message());
    }
}

TEST_F(MappingTest, damage_is_found_as_by_reading) {
    const std::string tar = mixed_shard(0, 20);
    const std::string zip = stored_zip(0, 20, 3000);
    for (const std::string& whole : {tar, zip}) {
        const char* const name = &whole == &tar ? "x.tar" : "x.zip";
        for (size_t at = 0; at < whole.size(); at += whole.size() / 97 + 1) {
            for (const bool cut : {true, false}) {
                std::string bytes = whole;
                if (cut)
                    bytes.resize(at);
                else
                    bytes[at] = static_cast<char>(bytes[at] ^ 0x40);
                folder.write(name, bytes);
                Client read(folder / name, {});
                Client mapped(folder / name, {{"map", "true"}});
                EXPECT_EQ(read.keys(), mapped.keys()) << name << " at " << at;
                EXPECT_EQ(read.code, mapped.code);
                EXPECT_EQ(read.message(), mapped.message());
            }
        }
    }
}

// What is mapped later than the change is not delivered.
TEST_F(MappingTest, a_file_that_changes_between_two_pieces_is_an_error) {
    for (const bool cut : {true, false})
        for (const char* name : {"a.tar", "a.zip"}) {
            const bool is_tar = std::string_view(name) == "a.tar";
            folder.write(name, is_tar ? shard_bytes(0, 200, large) : stored_zip(0, 200, large));
            const Settings settings = {{"map", "true"}, {"memory", "4MiB"}, {"threads", "1"}};
            Client client(folder / name, settings);
            EXPECT_EQ(client.keys(3).size(), 3u);
            if (cut) {
                std::filesystem::resize_file(folder / name, 30'000'000);
            } else {
                std::ofstream(folder / name, std::ios::app) << "more";
            }
            EXPECT_LT(client.keys().size(), 190u);
            EXPECT_EQ(client.code, cut ? SHF_E_TRUNCATED : SHF_E_CHANGED) << client.message();
        }
}

// Between two reads of a data set too.
TEST_F(MappingTest, a_dataset_whose_files_were_cut_gives_errors) {
    folder.write("a.tar", shard_bytes(0, 20, large));
    folder.write("b.zip", stored_zip(1, 20, large));
    folder.write("c.zip", stored_zip(2, 20, 3000));
    for (const char* name : {"a.tar", "b.zip", "c.zip"}) {
        const std::string path = folder / name;
        const char* const url = path.c_str();
        shf_error error = {};
        shf_options* options = shf_options_new();
        shf_options_set(options, "map", "true", &error);
        shf_dataset* dataset = nullptr;
        ASSERT_EQ(shf_dataset_open(&dataset, &url, 1, options, &error), SHF_OK) << error.message;
        shf_options_free(options);
        std::filesystem::resize_file(path, 0);
        shf_sample* sample = nullptr;
        EXPECT_EQ(shf_dataset_get(dataset, 7, &sample, &error), SHF_E_TRUNCATED) << error.message;
        shf_sample_unref(sample);
        shf_dataset_close(dataset);
    }
}

TEST_F(MappingTest, kept_samples_hold_no_descriptor) {
    std::vector<std::string> urls;
    for (size_t i = 0; i < 40; ++i) {
        const std::string name = numbered("s", i) + (i % 2 == 0 ? ".tar" : ".zip");
        folder.write(name, i % 2 == 0 ? shard_bytes(i, 1, large) : stored_zip(i, 1, large));
        urls.push_back(folder / name);
    }
    const auto descriptors = [] {
        return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
    };
    const auto before = descriptors();
    std::vector<SampleHandle> kept;
    {
        Client client(urls, {{"map", "true"}, {"threads", "1"}});
        while (SampleHandle sample = client.next()) kept.push_back(std::move(sample));
        EXPECT_EQ(client.code, SHF_END) << client.message();
    }
    ASSERT_EQ(kept.size(), 40u);
    EXPECT_EQ(descriptors(), before);
    for (const SampleHandle& sample : kept) EXPECT_TRUE(is_whole(sample.get()));
}

// What comes out of a compressed tar is in memory, and not in its mapping.
TEST_F(MappingTest, members_of_a_compressed_tar_are_viewed_in_memory) {
    folder.write("a.tar", shard_bytes(0, 4, large));
    const std::string path = folder / "a.tar";
    ASSERT_EQ(std::system(("gzip -n " + path).c_str()), 0);
    shf_error error = {};
    shf_options* options = shf_options_new();
    shf_options_set(options, "map", "true", &error);
    shf_archive* archive = nullptr;
    ASSERT_EQ(shf_archive_open(&archive, (path + ".gz").c_str(), options, &error), SHF_OK)
        << error.message;
    shf_options_free(options);
    std::ofstream(path + ".gz", std::ios::app) << "more";
    shf_bytes view = {};
    EXPECT_EQ(shf_archive_view(archive, 3, &view, &error), SHF_OK) << error.message;
    EXPECT_EQ(view.size, large);
    shf_archive_close(archive);
}

class MappedArchive {
  public:
    MappedArchive(const std::string& path, const char* map) {
        shf_options* options = shf_options_new();
        EXPECT_EQ(shf_options_set(options, "map", map, &error), SHF_OK);
        EXPECT_EQ(shf_archive_open(&archive, path.c_str(), options, &error), SHF_OK)
            << error.message;
        shf_options_free(options);
    }
    ~MappedArchive() { shf_archive_close(archive); }
    MappedArchive(const MappedArchive&) = delete;
    MappedArchive& operator=(const MappedArchive&) = delete;

    shf_archive* archive = nullptr;
    shf_error error = {};
};

TEST_F(MappingTest, members_of_an_archive_are_viewed_in_the_mapping) {
    folder.write("a.tar", shard_bytes(0, 4, large));
    folder.write("a.zip", stored_zip(0, 4, large));
    for (const char* name : {"a.tar", "a.zip"}) {
        MappedArchive mapped(folder / name, "true");
        MappedArchive read(folder / name, "false");
        for (uint64_t i = 0; i < shf_archive_member_count(mapped.archive); ++i) {
            shf_bytes view = {};
            ASSERT_EQ(shf_archive_view(mapped.archive, i, &view, &mapped.error), SHF_OK)
                << mapped.error.message;
            EXPECT_TRUE(lies_in(folder / name, view));
            EXPECT_EQ(shf_archive_view(read.archive, i, &view, &read.error), SHF_E_UNSUPPORTED);
            std::string copied(large, '\0');
            ASSERT_EQ(shf_archive_read(read.archive, i, copied.data(), copied.size(), &read.error),
                      SHF_OK);
            ASSERT_EQ(shf_archive_view(mapped.archive, i, &view, &mapped.error), SHF_OK);
            EXPECT_EQ(text_of(view), copied);
        }
    }
}

TEST_F(MappingTest, samples_of_a_dataset_are_where_the_file_is_mapped) {
    folder.write("a.tar", mixed_shard(0, 30));
    folder.write("b.zip", stored_zip(1, 30, large));
    const std::string paths[] = {folder / "a.tar", folder / "b.zip"};
    const char* const urls[] = {paths[0].c_str(), paths[1].c_str()};
    shf_error error = {};
    shf_dataset* datasets[2] = {};
    for (const bool map : {false, true}) {
        shf_options* options = shf_options_new();
        shf_options_set(options, "map", map ? "true" : "false", &error);
        ASSERT_EQ(shf_dataset_open(&datasets[map], urls, 2, options, &error), SHF_OK)
            << error.message;
        shf_options_free(options);
    }
    ASSERT_EQ(shf_dataset_sample_count(datasets[1]), 60u);
    size_t shown = 0;
    for (uint64_t i = 0; i < 60; ++i) {
        std::string texts[2];
        for (const bool map : {false, true}) {
            shf_sample* sample = nullptr;
            ASSERT_EQ(shf_dataset_get(datasets[map], i, &sample, &error), SHF_OK) << error.message;
            const SampleHandle handle(sample);
            texts[map] = key_of(sample) + text_of(text_field(sample));
            if (map && lies_in(paths[i / 30], text_field(sample))) ++shown;
        }
        EXPECT_EQ(texts[0], texts[1]);
    }
    EXPECT_GE(shown, 30u);
    for (shf_dataset* dataset : datasets) shf_dataset_close(dataset);
}

}  // namespace
