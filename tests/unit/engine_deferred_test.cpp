// Large arrays are read straight into the rows of a batch: the same batches as of a compressed
// shard, where that cannot be, and the same care about damage.
#include "batch_client.h"
#include "filter_encoders.h"
#include "npy_builder.h"
#include "resume_client.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace shf::test {
namespace {

constexpr size_t large = 60000;  // words of 4 bytes

std::vector<uint32_t> words(uint64_t seed, size_t count = large) {
    std::vector<uint32_t> out(count);
    auto word = static_cast<uint32_t>(seed * 2654435761U + 1);
    for (uint32_t& one : out) one = word = word * 1664525U + 1013904223U;
    return out;
}

// Arrays of all kinds that are copied, turned, swapped, or have a header that is long.
std::string sample(uint64_t i) {
    const std::string key = numbered("k", i);
    const auto numbers = words(i);
    std::string long_header = npy_header(npy_literal("<u4", {60000}) + std::string(3000, ' '), 2);
    long_header.append(reinterpret_cast<const char*>(numbers.data()), large * 4);
    std::vector<uint8_t> bools(4 * large);
    std::memcpy(bools.data(), numbers.data(), bools.size());
    return member(key + ".cls", std::to_string(i)) +
           member(key + ".a.npy", npy("<u4", {200, 300}, numbers)) +
           member(key + ".b.npy", npy("<u4", {200, 300}, numbers, true)) +
           member(key + ".txt", key) + member(key + ".c.npy", npy(">u4", {60000}, numbers)) +
           member(key + ".d.npy", npy("|b1", {240000}, bools)) +
           member(key + ".e.npy", long_header) +
           member(key + ".f.npy", npy("<u4", {5}, words(i, 5)));
}

std::string ragged_sample(uint64_t i) {
    const size_t count = 30000 + 1000 * (i % 7);
    return member(numbered("k", i) + ".x.npy",
                  npy("<u4", {static_cast<int64_t>(count)}, words(i, count)));
}

// Everything in the batches that are left, as text.
std::vector<std::string> contents(BatchClient& client) {
    std::vector<std::string> all;
    while (const BatchHandle batch = client.next_batch()) {
        std::string bytes;
        for (size_t c = 0; c < shf_batch_column_count(batch.get()); ++c) {
            shf_bytes name;
            shf_array array;
            EXPECT_EQ(shf_batch_column(batch.get(), c, &name, &array), SHF_OK);
            if (text_of(name) == "__url__") continue;
            bytes += text_of(name) + std::string(static_cast<const char*>(array.data), array.size);
            for (int d = 0; d < array.ndim; ++d) bytes += " " + std::to_string(array.shape[d]);
        }
        all.push_back(std::move(bytes));
    }
    return all;
}

class EngineDeferred : public testing::Test {
  protected:
    void write(uint64_t samples, std::string (*sample)(uint64_t)) {
        std::string bytes;
        for (uint64_t i = 0; i < samples; ++i) bytes += sample(i);
        bytes += end_marker();
        directory.write("plain.tar", bytes);
        directory.write("packed.tar.gz", gzip(bytes, 1));
    }
    [[nodiscard]] std::string plain() const { return directory / "plain.tar"; }
    [[nodiscard]] std::string packed() const { return directory / "packed.tar.gz"; }

    void expect_same(const Settings& settings) {
        BatchClient one({packed()}, settings), other({plain()}, settings);
        const auto wanted = contents(one);
        EXPECT_EQ(one.code, SHF_END) << one.message();
        EXPECT_FALSE(wanted.empty());
        EXPECT_TRUE(contents(other) == wanted);
        EXPECT_EQ(other.code, SHF_END) << other.message();
    }

    TempDirectory directory;
    const Watchdog watchdog{300};
};

TEST_F(EngineDeferred, arrays_of_all_kinds) {
    write(7, sample);
    for (const char* threads : {"1", "3"})
        for (const char* decode :
             {"auto", "a.npy, cls:int", "none;d.npy:npy, e.npy:npy, c.npy, b.npy",
              // Also wanted as bytes, which are always whole.
              "a.npy:npy, x;a.npy:bytes, f.npy"})
            expect_same({{"batch", "3"},
                         {"decode", decode},
                         {"threads", threads},
                         {"decode_threads", threads}});
}

TEST_F(EngineDeferred, rows_of_unequal_shape) {
    write(20, ragged_sample);
    for (const char* ragged : {"offsets", "pad"})
        expect_same({{"batch", "6"}, {"ragged", ragged}, {"decode_threads", "3"}});
    BatchClient client({plain()}, {{"batch", "6"}});
    EXPECT_TRUE(contents(client).empty());
    EXPECT_EQ(client.code, SHF_E_FORMAT) << client.message();
}

TEST_F(EngineDeferred, filters_lanes_limits_and_epochs) {
    write(10, sample);
    for (const Settings& more :
         {Settings{{"fields", "a.npy,cls"}}, Settings{{"slice", "1::3"}}, Settings{{"limit", "7"}},
          Settings{{"epochs", "2"}}, Settings{{"shuffle", "4"}, {"seed", "1"}}})
        expect_same(Settings{{"batch", "3"}, {"decode_threads", "2"}} + more);
}

TEST_F(EngineDeferred, goes_on_in_the_middle) {
    write(20, sample);
    const Settings settings{{"batch", "3"}};
    BatchClient whole({plain()}, settings);
    const auto all = contents(whole);
    BatchClient first({plain()}, settings);
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(first.next_batch());
    BatchClient rest({plain()}, settings);
    ASSERT_EQ(restore(rest, save(first)), SHF_OK) << rest.message();
    EXPECT_TRUE(contents(rest) == std::vector(all.begin() + 4, all.end()));
}

TEST_F(EngineDeferred, an_index_has_whole_fields) {
    write(20, sample);
    BatchClient client({plain()}, {{"batch", "3"}, {"write_index", "true"}});
    const auto all = contents(client);
    shf_options* options = shf_options_new();
    shf_error error{};
    ASSERT_EQ(shf_options_set(options, "index", "require", &error), SHF_OK);
    const std::string url = plain();
    const char* urls[] = {url.c_str()};
    shf_dataset* dataset = nullptr;
    ASSERT_EQ(shf_dataset_open(&dataset, urls, 1, options, &error), SHF_OK) << error.message;
    shf_sample* read = nullptr;
    ASSERT_EQ(shf_dataset_get(dataset, 7, &read, &error), SHF_OK) << error.message;
    shf_bytes field;
    ASSERT_EQ(shf_sample_find(read, "a.npy", 5, &field), SHF_OK);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(field.data), field.size),
              npy("<u4", {200, 300}, words(7)));
    shf_sample_unref(read);
    shf_dataset_close(dataset);
    shf_options_free(options);
}

TEST_F(EngineDeferred, a_bad_array_is_a_fault_of_its_sample) {
    std::string bytes;
    for (uint64_t i = 0; i < 12; ++i)
        bytes += member(numbered("k", i) + ".npy", npy("<u4", {i == 5 ? 60001 : 60000}, words(i)));
    directory.write("plain.tar", bytes + end_marker());
    BatchClient client({plain()}, {{"batch", "4"}});
    EXPECT_EQ(contents(client).size(), 1U);
    EXPECT_EQ(client.code, SHF_E_FORMAT);
    EXPECT_NE(client.message().find("k5.npy"), std::string::npos) << client.message();
    BatchClient skipping({plain()}, {{"batch", "4"}, {"on_error", "skip_sample"}});
    EXPECT_EQ(contents(skipping).size(), 3U);
    EXPECT_EQ(skipping.code, SHF_END) << skipping.message();
    EXPECT_EQ(skipping.stat(SHF_STAT_SKIPPED_SAMPLES), 1U);
}

TEST_F(EngineDeferred, a_shard_that_ends_early) {
    write(20, sample);
    const auto size = std::filesystem::file_size(plain());
    for (const uintmax_t left : {size - 1024, size / 2, size / 3}) {
        std::filesystem::resize_file(plain(), left);
        BatchClient client({plain()}, {{"batch", "1"}, {"decode", "a.npy"}});
        const auto rows = contents(client);
        EXPECT_LE(rows.size(), 20U);
        EXPECT_EQ(client.code, SHF_E_TRUNCATED) << client.message();
    }
}

// What was found whole may be gone when it is read.
TEST_F(EngineDeferred, a_shard_that_changes_meanwhile) {
    for (const bool cut : {true, false}) {
        std::string bytes;
        for (uint64_t i = 0; i < 64; ++i)
            bytes += member(numbered("k", i) + ".npy", npy("<u4", {1 << 18}, words(i, 1 << 18)));
        directory.write("plain.tar", bytes + end_marker());
        BatchClient client({plain()}, {{"batch", "1"}, {"memory", "32MiB"}});
        EXPECT_TRUE(client.next_batch());
        if (cut)
            std::filesystem::resize_file(plain(), bytes.size() / 8);
        else
            directory.write("plain.tar", bytes + bytes + end_marker());
        EXPECT_LT(contents(client).size(), 63U);
        EXPECT_EQ(client.code, cut ? SHF_E_TRUNCATED : SHF_E_CHANGED) << client.message();
    }
}

}  // namespace
}  // namespace shf::test
