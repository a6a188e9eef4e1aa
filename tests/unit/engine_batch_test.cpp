// Batches of a stream: every sample in its row, in order, whatever the number of threads; what is
// done about fields that are missing, damaged or of another shape.
#include "batch_client.h"
#include "filter_encoders.h"
#include "npy_builder.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace shf::test {
namespace {

constexpr uint64_t MiB = 1 << 20;

// Sample `i`: the number i in "cls", its key in "txt", i + 1 times i as float32 in "x.npy" when
// `ragged`, else 1,500 times (more than is decoded with the row), and of every third sample with
// its bytes turned round: that is work for any thread, and the others' numbers are copied.
std::string sample(uint64_t i, bool ragged = false) {
    const std::string key = numbered("k", i);
    const size_t count = ragged ? i % 7 + 1 : 1500;
    const bool swapped = i % 3 == 1;
    const auto number = static_cast<float>(i);
    const auto bits = std::bit_cast<uint32_t>(number);
    return member(key + ".cls", std::to_string(i)) + member(key + ".txt", key) +
           member(key + ".x.npy",
                  npy(swapped ? ">f4" : "<f4", {static_cast<int64_t>(count)},
                      std::vector<uint32_t>(count, swapped ? __builtin_bswap32(bits) : bits)));
}

std::string shard(uint64_t from, uint64_t to, bool ragged = false) {
    std::string bytes;
    for (uint64_t i = from; i < to; ++i) bytes += sample(i, ragged);
    return bytes + end_marker();
}

// The numbers of all samples in the order in which they come, each checked in every column.
std::vector<int64_t> numbers_of(BatchClient& client, std::vector<size_t>* sizes = nullptr) {
    std::vector<int64_t> all;
    while (const BatchHandle batch = client.next_batch()) {
        const size_t rows = shf_batch_row_count(batch.get());
        if (sizes) sizes->push_back(rows);
        const shf_array cls = column(batch, "cls"), txt = column(batch, "txt"),
                        x = column(batch, "x.npy");
        EXPECT_EQ(cls.dtype, SHF_DTYPE_INT64);
        EXPECT_EQ(x.dtype, SHF_DTYPE_FLOAT32);
        EXPECT_EQ(cls.shape[0], static_cast<int64_t>(rows));
        for (size_t row = 0; row < rows; ++row) {
            const int64_t i = row_of<int64_t>(cls, row)[0];
            const std::string key = "k" + std::to_string(i);
            EXPECT_EQ(text_of(txt, row), key);
            shf_bytes found;
            EXPECT_EQ(shf_batch_key(batch.get(), row, &found), SHF_OK);
            EXPECT_EQ(test::text_of(found), key);
            for (const float number : row_of<float>(x, row))
                if (number != static_cast<float>(i)) {
                    ADD_FAILURE() << key << " has " << number;
                    break;
                }
            all.push_back(i);
        }
    }
    return all;
}

class EngineBatch : public testing::Test {
  protected:
    // 5 shards with 100 samples each.
    void write(bool ragged = false) const {
        for (uint64_t s = 0; s < 5; ++s)
            directory.write(numbered("", s) + ".tar", shard(100 * s, 100 * (s + 1), ragged));
    }
    [[nodiscard]] std::string url() const { return directory / "{0..4}.tar"; }

    const Watchdog watchdog{300};
    const TempDirectory directory;
};

TEST_F(EngineBatch, have_every_sample_in_its_row) {
    write();
    for (const char* threads : {"1", "2", "8"})
        for (const char* size : {"1", "7", "64", "500", "1000"}) {
            BatchClient client(url(), {{"batch", size}, {"decode_threads", threads}});
            std::vector<size_t> sizes;
            EXPECT_EQ(numbers_of(client, &sizes), range(0, 500)) << threads << " " << size;
            EXPECT_EQ(client.code, SHF_END) << client.message();
            const auto wanted = static_cast<size_t>(std::atoi(size));
            ASSERT_FALSE(sizes.empty());
            EXPECT_EQ(sizes.back(), 500 % wanted == 0 ? wanted : 500 % wanted);
            sizes.pop_back();
            for (const size_t rows : sizes) EXPECT_EQ(rows, wanted);
            EXPECT_EQ(client.stat(SHF_STAT_SAMPLES), 500U);
        }
}

TEST_F(EngineBatch, come_in_the_order_of_the_samples) {
    write();
    for (const Settings& order :
         {Settings{{"shuffle", "60"}, {"seed", "3"}}, Settings{{"lanes", "2"}, {"threads", "3"}},
          Settings{{"shuffle", "20"}, {"shuffle_shards", "true"}, {"epochs", "2"}},
          Settings{{"epoch_samples", "130"}, {"epochs", "3"}}}) {
        Client samples(url(), order);
        std::vector<int64_t> expected;
        while (const SampleHandle one = samples.next())
            expected.push_back(std::atoi(key_of(one.get()).c_str() + 1));
        ASSERT_GE(expected.size(), 390U);
        for (const char* threads : {"1", "2", "8"}) {
            BatchClient client(url(),
                               order + Settings{{"batch", "32"}, {"decode_threads", threads}});
            EXPECT_EQ(numbers_of(client), expected) << threads;
            EXPECT_EQ(client.code, SHF_END) << client.message();
        }
    }
}

TEST_F(EngineBatch, last_one_may_be_dropped) {
    write();
    BatchClient client(url(), {{"batch", "64"}, {"last", "drop"}});
    EXPECT_EQ(numbers_of(client), range(0, 448));
    EXPECT_EQ(client.code, SHF_END);
}

TEST_F(EngineBatch, decode_names_columns) {
    write();
    BatchClient client(url(), {{"batch", "10"}, {"decode", "foo;cls:text, x.npy:bytes"}});
    const BatchHandle batch = client.next_batch();
    ASSERT_TRUE(batch) << client.message();
    EXPECT_EQ(shf_batch_column_count(batch.get()), 4U);
    EXPECT_EQ(text_of(column(batch, "foo"), 3), "3");
    EXPECT_EQ(column(batch, "foo").kind, SHF_COLUMN_TEXT);
    EXPECT_EQ(row_of<char>(column(batch, "x.npy"), 3).size(), 6128U);
    EXPECT_TRUE(text_of(column(batch, "__url__"), 3).ends_with("/0.tar"));
    size_t index = 0;
    EXPECT_EQ(shf_batch_find(batch.get(), "txt", 3, &index), SHF_E_NOT_FOUND);
}

TEST_F(EngineBatch, bad_options_are_errors_of_open) {
    write();
    BatchClient client(url(), {{"batch", "10"}, {"decode", "cls:integer"}});
    EXPECT_EQ(client.code, SHF_E_USAGE);
    EXPECT_NE(client.message().find("integer"), std::string::npos);
}

TEST_F(EngineBatch, and_samples_are_two_ways) {
    write();
    BatchClient batches(url(), {{"batch", "10"}});
    EXPECT_FALSE(batches.next());
    EXPECT_EQ(batches.code, SHF_E_USAGE);
    EXPECT_TRUE(batches.next_batch());  // that was no fault of the stream
    BatchClient samples(url(), {});
    EXPECT_FALSE(samples.next_batch());
    EXPECT_EQ(samples.code, SHF_E_USAGE);
    EXPECT_TRUE(samples.next());
}

TEST_F(EngineBatch, rows_of_unequal_shape) {
    write(true);
    BatchClient refused(url(), {{"batch", "10"}});
    EXPECT_FALSE(refused.next_batch());
    EXPECT_EQ(refused.code, SHF_E_FORMAT);
    EXPECT_NE(refused.message().find("k1.x.npy"), std::string::npos) << refused.message();
    EXPECT_NE(refused.message().find("ragged=pad"), std::string::npos) << refused.message();
    for (const char* threads : {"1", "8"}) {
        BatchClient offsets(url(),
                            {{"batch", "10"}, {"ragged", "offsets"}, {"decode_threads", threads}});
        EXPECT_EQ(numbers_of(offsets), range(0, 500));
        EXPECT_EQ(offsets.code, SHF_END) << offsets.message();
        BatchClient pad(url(), {{"batch", "10"}, {"ragged", "pad"}, {"decode_threads", threads}});
        int64_t i = 0;
        while (const BatchHandle batch = pad.next_batch()) {
            const shf_array x = column(batch, "x.npy");
            ASSERT_EQ(x.ndim, 2);
            EXPECT_EQ(x.shape[1], 7);
            ASSERT_TRUE(x.shapes);
            for (size_t row = 0; row < 10; ++row, ++i) {
                std::vector<float> expected(7, 0.0F);
                std::fill_n(expected.begin(), i % 7 + 1, static_cast<float>(i));
                EXPECT_EQ(row_of<float>(x, row), expected);
                EXPECT_EQ(x.shapes[row], i % 7 + 1);
            }
        }
        EXPECT_EQ(i, 500);
    }
}

TEST_F(EngineBatch, padding_of_more_dimensions) {
    std::string bytes;
    for (int64_t i = 0; i < 20; ++i) {
        const int64_t height = i % 3 + 1, width = i % 4 + 1;
        bytes += member(numbered("k", static_cast<size_t>(i)) + ".npy",
                        npy("<u2", {height, width, 2},
                            std::vector<uint16_t>(static_cast<size_t>(2 * height * width),
                                                  static_cast<uint16_t>(i + 1))));
    }
    directory.write("a.tar", bytes + end_marker());
    BatchClient client(directory / "a.tar", {{"batch", "20"}, {"ragged", "pad"}});
    const BatchHandle batch = client.next_batch();
    ASSERT_TRUE(batch) << client.message();
    const shf_array x = column(batch, "npy");
    ASSERT_EQ(x.ndim, 4);
    EXPECT_EQ(std::vector<int64_t>(x.shape, x.shape + 4), (std::vector<int64_t>{20, 3, 4, 2}));
    EXPECT_EQ(x.row_ndim, 3);
    const auto* numbers = static_cast<const uint16_t*>(x.data);
    for (int64_t i = 0; i < 20; ++i)
        for (int64_t h = 0; h < 3; ++h)
            for (int64_t w = 0; w < 4; ++w)
                for (int64_t c = 0; c < 2; ++c) {
                    const bool inside = h < i % 3 + 1 && w < i % 4 + 1;
                    EXPECT_EQ(*numbers++, inside ? i + 1 : 0);
                }
    EXPECT_EQ(std::vector<int64_t>(x.shapes + 15, x.shapes + 18), (std::vector<int64_t>{3, 2, 2}));
}

TEST_F(EngineBatch, missing_fields) {
    std::string bytes;
    for (uint64_t i = 0; i < 40; ++i)
        bytes += i % 4 == 1 ? member(numbered("k", i) + ".cls", std::to_string(i)) : sample(i);
    directory.write("a.tar", bytes + end_marker());
    BatchClient refused(directory / "a.tar", {{"batch", "8"}});
    EXPECT_FALSE(refused.next_batch());
    EXPECT_EQ(refused.code, SHF_E_FORMAT);
    EXPECT_NE(refused.message().find("k1.txt"), std::string::npos) << refused.message();

    BatchClient skipped(directory / "a.tar", {{"batch", "8"}, {"missing", "skip"}});
    std::vector<int64_t> expected;
    for (int64_t i = 0; i < 40; ++i)
        if (i % 4 != 1) expected.push_back(i);
    EXPECT_EQ(numbers_of(skipped), expected);
    EXPECT_EQ(skipped.stat(SHF_STAT_PASSED_OVER), 10U);

    BatchClient empty(directory / "a.tar", {{"batch", "8"}, {"missing", "empty"}});
    const BatchHandle batch = empty.next_batch();
    ASSERT_TRUE(batch) << empty.message();
    EXPECT_EQ(text_of(column(batch, "txt"), 1), "");
    EXPECT_EQ(row_of<float>(column(batch, "x.npy"), 1), std::vector<float>(1500));
    EXPECT_EQ(row_of<float>(column(batch, "x.npy"), 2), std::vector<float>(1500, 2.0F));

    // A field that the first sample does not have has no column under decode=auto.
    directory.write(
        "b.tar", member("a.cls", "1") + member("b.cls", "2") + member("b.txt", "x") + end_marker());
    BatchClient more(directory / "b.tar", {{"batch", "8"}});
    EXPECT_FALSE(more.next_batch());
    EXPECT_EQ(more.code, SHF_E_FORMAT);
    EXPECT_NE(more.message().find("b.txt"), std::string::npos) << more.message();
    BatchClient named(directory / "b.tar", {{"batch", "8"}, {"decode", "cls:int"}});
    EXPECT_TRUE(named.next_batch());
}

// Samples with a number that is none leave no hole: batches stay full, and in order.
TEST_F(EngineBatch, bad_samples_are_skipped) {
    std::string bytes;
    std::vector<int64_t> expected;
    for (uint64_t i = 0; i < 300; ++i) {
        const bool bad = i % 13 == 5 || i == 0 || i == 299 || (i > 100 && i < 180);
        if (!bad) expected.push_back(static_cast<int64_t>(i));
        std::string text = sample(i);
        if (bad) text.replace(512, 1, "x");
        bytes += text;
    }
    directory.write("a.tar", bytes + end_marker());
    for (const char* threads : {"1", "2", "8"}) {
        BatchClient client(
            directory / "a.tar",
            {{"batch", "16"}, {"on_error", "skip_sample"}, {"decode_threads", threads}});
        std::vector<size_t> sizes;
        EXPECT_EQ(numbers_of(client, &sizes), expected);
        EXPECT_EQ(client.code, SHF_END) << client.message();
        for (size_t i = 0; i + 1 < sizes.size(); ++i) EXPECT_EQ(sizes[i], 16U);
        EXPECT_EQ(client.stat(SHF_STAT_SKIPPED_SAMPLES), 300 - expected.size());
        EXPECT_EQ(client.skips(SHF_E_FORMAT), 300 - expected.size());
    }
    BatchClient raised(directory / "a.tar", {{"batch", "16"}});
    EXPECT_FALSE(raised.next_batch());
    EXPECT_EQ(raised.code, SHF_E_FORMAT);
    for (const char* part : {"a.tar", "k0.cls", "at byte 0", "x"})
        EXPECT_NE(raised.message().find(part), std::string::npos) << raised.message();
    EXPECT_FALSE(raised.next_batch());  // it repeats
    EXPECT_EQ(raised.code, SHF_E_FORMAT);
}

// The type of a sample that is not taken is no type of the column: memory for one byte a row, and
// rows of 8,000, would be the worst of it.
TEST_F(EngineBatch, bad_samples_leave_no_type_behind) {
    const auto wide = [](uint64_t i) {
        return member(numbered("k", i) + ".npy",
                      npy("<f8", {1000}, std::vector<double>(1000, 1.0)));
    };
    const std::string narrow = npy("|u1", {1}, std::vector<uint8_t>{1});
    std::string bytes;
    for (uint64_t i = 0; i < 8; ++i)
        bytes += wide(i) + member(numbered("k", i) + ".cls", std::to_string(i));
    bytes += member("k8.npy", narrow) + member("k8.cls", "bad");
    for (uint64_t i = 9; i < 25; ++i) bytes += member(numbered("k", i) + ".cls", std::to_string(i));
    const Settings settings = {{"batch", "8"},
                               {"missing", "empty"},
                               {"on_error", "skip_sample"},
                               {"decode", "npy, cls:int"}};
    directory.write("a.tar", bytes + end_marker());
    BatchClient client(directory / "a.tar", settings);
    for (int b = 0; b < 3; ++b) {
        const BatchHandle batch = client.next_batch();
        ASSERT_TRUE(batch) << client.message();
        EXPECT_EQ(row_of<double>(column(batch, "npy"), 7), std::vector<double>(1000, b == 0));
    }
    EXPECT_FALSE(client.next_batch());
    EXPECT_EQ(client.code, SHF_END) << client.message();
    // The same at the very first sample.
    directory.write("b.tar",
                    member("a.npy", narrow) + member("a.cls", "bad") + bytes + end_marker());
    BatchClient first(directory / "b.tar", settings);
    const BatchHandle batch = first.next_batch();
    ASSERT_TRUE(batch) << first.message();
    EXPECT_EQ(row_of<double>(column(batch, "npy"), 7), std::vector<double>(1000, 1.0));
}

TEST_F(EngineBatch, an_epoch_without_rows_is_an_error) {
    write();
    for (const Settings& settings :
         {Settings{{"missing", "skip"}, {"decode", "nothing:int"}, {"epochs", "0"}},
          Settings{{"on_error", "skip_sample"},
                   {"max_skips", "18446744073709551615"},
                   {"decode", "txt:int"},
                   {"epochs", "0"}}}) {
        BatchClient client(url(), settings + Settings{{"batch", "8"}});
        EXPECT_FALSE(client.next_batch());
        EXPECT_EQ(client.code, SHF_E_FORMAT) << client.message();
    }
    // Once through is no error: all were asked to be passed over.
    BatchClient once(url(), {{"missing", "skip"}, {"decode", "nothing:int"}, {"batch", "8"}});
    EXPECT_FALSE(once.next_batch());
    EXPECT_EQ(once.code, SHF_END) << once.message();
}

TEST_F(EngineBatch, too_many_skips_are_told_in_their_place) {
    std::string bytes = shard(0, 20);
    bytes.resize(bytes.size() - 1024);
    for (uint64_t i = 20; i < 60; ++i) bytes += member(numbered("k", i) + ".cls", "bad");
    directory.write("a.tar", bytes + end_marker());
    for (const char* threads : {"1", "8"}) {
        BatchClient client(directory / "a.tar", {{"batch", "8"},
                                                 {"decode", "cls:int"},
                                                 {"on_error", "skip_sample"},
                                                 {"max_skips", "5"},
                                                 {"decode_threads", threads}});
        EXPECT_TRUE(client.next_batch()) << client.message();
        EXPECT_TRUE(client.next_batch()) << client.message();
        EXPECT_FALSE(client.next_batch());
        EXPECT_EQ(client.code, SHF_E_LIMIT);
        EXPECT_NE(client.message().find("max_skips"), std::string::npos) << client.message();
    }
}

TEST_F(EngineBatch, batches_before_a_fault_come_first) {
    write();
    std::string bytes = shard(200, 300);
    bytes.resize(bytes.size() / 2);
    directory.write("2.tar", bytes);
    BatchClient client(url(), {{"batch", "50"}});
    const auto numbers = numbers_of(client);
    EXPECT_GE(numbers.size(), 200U);
    EXPECT_EQ(numbers, range(0, static_cast<int64_t>(numbers.size())));
    EXPECT_EQ(client.code, SHF_E_TRUNCATED) << client.message();
}

TEST_F(EngineBatch, memory_is_bounded) {
    // 64 samples of 4 MiB: 512 MiB decoded and read.
    std::string bytes;
    for (uint64_t i = 0; i < 64; ++i)
        bytes +=
            member(numbered("k", i) + ".npy", npy("<f4", {1 << 20}, std::vector<float>(1 << 20)));
    directory.write("a.tar", bytes + end_marker());
    BatchClient client(directory / "a.tar", {{"batch", "4"}, {"memory", "64MiB"}});
    size_t rows = 0;
    while (const BatchHandle batch = client.next_batch()) rows += shf_batch_row_count(batch.get());
    EXPECT_EQ(rows, 64U);
    EXPECT_EQ(client.code, SHF_END) << client.message();
    EXPECT_LE(client.stat(SHF_STAT_MEMORY_PEAK), 128 * MiB);
    BatchClient large(directory / "a.tar", {{"batch", "32"}, {"memory", "64MiB"}});
    EXPECT_FALSE(large.next_batch());
    EXPECT_EQ(large.code, SHF_E_LIMIT);
    EXPECT_NE(large.message().find("memory="), std::string::npos) << large.message();
    // Two columns, neither of them larger than memory; and with what they are decoded from.
    BatchClient two(directory / "a.tar",
                    {{"batch", "10"}, {"memory", "64MiB"}, {"decode", "npy, x;npy:bytes"}});
    EXPECT_FALSE(two.next_batch());
    EXPECT_EQ(two.code, SHF_E_LIMIT);
    directory.write("a.tar.gz", gzip(bytes.substr(0, bytes.size() / 4) + end_marker(), 1));
    const Settings padded = {{"batch", "10"}, {"memory", "64MiB"}, {"ragged", "pad"}};
    BatchClient kept(directory / "a.tar.gz", padded);
    EXPECT_FALSE(kept.next_batch());
    EXPECT_EQ(kept.code, SHF_E_LIMIT);
    // Arrays that are read straight into their rows are in memory once.
    BatchClient once(directory / "a.tar", padded);
    EXPECT_TRUE(once.next_batch()) << once.message();
    BatchClient skipping(directory / "a.tar",
                         {{"batch", "32"}, {"memory", "64MiB"}, {"on_error", "skip_sample"}});
    EXPECT_FALSE(skipping.next_batch());
    EXPECT_EQ(skipping.code, SHF_E_LIMIT);  // no fault of the samples
    EXPECT_EQ(skipping.stat(SHF_STAT_SKIPPED_SAMPLES), 0U);
    BatchClient field(directory / "a.tar", {{"batch", "4"}, {"max_decoded", "1MiB"}});
    EXPECT_FALSE(field.next_batch());
    EXPECT_EQ(field.code, SHF_E_LIMIT);
    EXPECT_NE(field.message().find("max_decoded="), std::string::npos) << field.message();
}

TEST_F(EngineBatch, belong_to_the_user) {
    write();
    std::vector<BatchHandle> kept;
    {
        BatchClient client(url(), {{"batch", "20"}, {"memory", "1MiB"}});
        while (BatchHandle batch = client.next_batch()) {
            const shf_array x = column(batch, "x.npy");
            std::memset(x.data, 0xAA, x.size);  // ours to write to
            kept.push_back(std::move(batch));
        }
        EXPECT_EQ(client.code, SHF_END) << client.message();
    }
    ASSERT_EQ(kept.size(), 25U);
    for (size_t b = 0; b < kept.size(); ++b) {
        const shf_array x = column(kept[b], "x.npy");
        EXPECT_TRUE(std::all_of(static_cast<uint8_t*>(x.data),
                                static_cast<uint8_t*>(x.data) + x.size,
                                [](uint8_t byte) { return byte == 0xAA; }));
        EXPECT_EQ(row_of<int64_t>(column(kept[b], "cls"), 7)[0], static_cast<int64_t>(20 * b + 7));
    }
}

TEST_F(EngineBatch, can_be_cancelled_and_wait_in_time) {
    const std::string silent = "pipe:cat " + directory / "head" + "; sleep 30";
    write();
    directory.write("head", shard(0, 30).substr(0, 10000));
    BatchClient timed(silent, {{"batch", "20"}, {"timeout", "50ms"}});
    EXPECT_FALSE(timed.next_batch());
    EXPECT_EQ(timed.code, SHF_E_TIMEOUT) << timed.message();
    EXPECT_FALSE(timed.next_batch());
    EXPECT_EQ(timed.code, SHF_E_TIMEOUT);
    BatchClient client(silent, {{"batch", "20"}});
    std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        shf_stream_cancel(client.stream);
    });
    EXPECT_FALSE(client.next_batch());
    EXPECT_EQ(client.code, SHF_E_CANCELLED);
    other.join();
}

TEST_F(EngineBatch, a_stream_may_be_closed_at_any_time) {
    write();
    for (int taken = 0; taken < 12; ++taken) {
        BatchClient client(url(), {{"batch", "10"}, {"decode_threads", "3"}});
        for (int i = 0; i < taken; ++i) EXPECT_TRUE(client.next_batch());
    }
}

// The user's allocator is called on the thread inside next_batch alone.
struct Allocations {
    std::thread::id thread;
    std::atomic<int64_t> live{0}, wrong_thread{0}, all{0};
};

void* allocate(void* ctx, size_t size, size_t alignment) {
    auto* seen = static_cast<Allocations*>(ctx);
    if (std::this_thread::get_id() != seen->thread) ++seen->wrong_thread;
    ++seen->live;
    ++seen->all;
    void* memory = nullptr;
    return ::posix_memalign(&memory, std::max<size_t>(alignment, 64), size) == 0 ? memory : nullptr;
}

void release(void* ctx, void* pointer, size_t /*size*/) {
    --static_cast<Allocations*>(ctx)->live;
    std::free(pointer);
}

TEST_F(EngineBatch, live_in_the_memory_of_the_user) {
    write();
    Allocations seen;
    seen.thread = std::this_thread::get_id();
    {
        BatchClient client({url()}, {{"batch", "32"}, {"decode_threads", "2"}},
                           [&](shf_options* options) {
                               shf_options_set_allocator(options, allocate, release, &seen);
                           });
        EXPECT_EQ(numbers_of(client), range(0, 500));
        EXPECT_EQ(client.code, SHF_END) << client.message();
    }
    EXPECT_GT(seen.all, 0);
    EXPECT_EQ(seen.live, 0);
    EXPECT_EQ(seen.wrong_thread, 0);
}

}  // namespace
}  // namespace shf::test
