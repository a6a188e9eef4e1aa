// Batches whose samples come in another order: of buckets, and of windows that packed rows are
// filled from. The same for any number of threads, and after a stream resumed between any two of
// them.
#include "batch_client.h"
#include "npy_builder.h"
#include "resume_client.h"

namespace shf::test {
namespace {

// Sample `i`: up to 59 numbers i. Half of the arrays have their bytes turned round.
std::string shard(uint64_t from, uint64_t to) {
    std::string bytes;
    for (uint64_t i = from; i < to; ++i) {
        const size_t count = i * 31 % 60;
        const auto number = static_cast<uint32_t>(i);
        const bool swapped = i % 2 == 1;
        bytes +=
            member(numbered("k", i) + ".npy",
                   npy(swapped ? ">i4" : "<i4", {static_cast<int64_t>(count)},
                       std::vector<uint32_t>(count, swapped ? __builtin_bswap32(number) : number)));
    }
    return bytes + end_marker();
}

// All of a batch that is not the same in every one.
std::string text_of_batch(const BatchHandle& batch) {
    const shf_array array = column(batch, "npy");
    std::string text = std::to_string(array.shape[1]) + ':';
    for (size_t row = 0; row < shf_batch_row_count(batch.get()); ++row) {
        shf_bytes key;
        EXPECT_EQ(shf_batch_key(batch.get(), row, &key), SHF_OK);
        text += ' ' + test::text_of(key);
        for (const int32_t number : row_of<int32_t>(array, row))
            text += ',' + std::to_string(number);
    }
    return text;
}

class EngineBucket : public testing::TestWithParam<Settings> {
  protected:
    EngineBucket() {
        for (uint64_t s = 0; s < 4; ++s)
            directory.write(std::to_string(s) + ".tar", shard(60 * s, 60 * (s + 1)));
    }
    [[nodiscard]] Settings with(const char* threads) const {
        return GetParam() + Settings{{"decode", "npy"}, {"decode_threads", threads}};
    }
    std::vector<std::string> all(BatchClient& client) const {
        std::vector<std::string> texts;
        while (const BatchHandle batch = client.next_batch()) texts.push_back(text_of_batch(batch));
        EXPECT_EQ(client.code, SHF_END) << client.error.message;
        return texts;
    }

    const TempDirectory directory;
    const std::string url = directory / "{0..3}.tar";
};

TEST_P(EngineBucket, same_for_any_number_of_threads) {
    BatchClient one(url, with("1")), many(url, with("4"));
    const std::vector<std::string> wanted = all(one);
    EXPECT_GT(wanted.size(), 9U);
    EXPECT_EQ(all(many), wanted);
}

TEST_P(EngineBucket, resumes_between_any_two_batches) {
    BatchClient whole(url, with("1"));
    const std::vector<std::string> wanted = all(whole);
    BatchClient running(url, with("2"));
    for (size_t stop = 0; stop < wanted.size(); ++stop) {
        BatchClient resumed(url, with("3"));
        ASSERT_EQ(restore(resumed, save(running)), SHF_OK) << resumed.error.message;
        EXPECT_EQ(all(resumed),
                  std::vector<std::string>(wanted.begin() + static_cast<long>(stop), wanted.end()));
        const BatchHandle batch = running.next_batch();
        ASSERT_TRUE(batch);
        EXPECT_EQ(text_of_batch(batch), wanted[stop]);
        // As if the batch had not been used.
        BatchClient again(url, with("2"));
        ASSERT_EQ(restore(again, save(running, 1)), SHF_OK) << again.error.message;
        const BatchHandle same = again.next_batch();
        ASSERT_TRUE(same);
        EXPECT_EQ(text_of_batch(same), wanted[stop]);
    }
}

INSTANTIATE_TEST_SUITE_P(
    all, EngineBucket,
    testing::Values(
        Settings{{"batch", "4"}, {"bucket", "10,30,60"}},
        Settings{{"batch", "4"}, {"bucket", "10,30,60"}, {"bucket_wait", "9"}, {"shuffle", "20"}},
        Settings{{"batch", "9"}, {"bucket", "20,60"}, {"batch_elements", "120"}, {"lanes", "4"}},
        Settings{{"batch", "50"}, {"batch_elements", "200"}, {"ragged", "pad"}, {"shuffle", "9"}},
        Settings{{"batch", "3"}, {"pack", "40"}, {"pack_window", "25"}},
        Settings{{"batch", "2"},
                 {"pack", "16"},
                 {"pack_window", "50"},
                 {"shuffle", "9"},
                 {"lanes", "2"}}));

}  // namespace
}  // namespace shf::test
