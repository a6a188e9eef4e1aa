// Reading through the cache, in one process.
#include "cache_client.h"

#include "cache/cache_lock.h"
#include "cache/cache_url.h"

#include <gtest/gtest.h>

#include <fcntl.h>

namespace {

using namespace shf::test;
using shf::cache_block_size;

constexpr uint64_t size = 2 * cache_block_size + 300001;
const std::string url = "test://host/a.tar";

using CacheSource = CacheTest;

TEST_F(CacheSource, a_second_reading_asks_for_nothing_but_the_version) {
    const std::string& bytes = serve(url, size, 1);
    EXPECT_EQ(rest_of(*open(url)), bytes);
    EXPECT_EQ(fetched(), size);
    EXPECT_EQ(use.cache_bytes, 0U);
    EXPECT_EQ(blocks().size(), 3U);
    EXPECT_TRUE(parts().empty());
    for (const size_t chunk : {1000UL, 65536UL, 70000UL, 300000UL, 5000000UL})
        EXPECT_EQ(rest_of(*open(url), 0, chunk), bytes);
    EXPECT_EQ(fetched(), 0U);
    EXPECT_EQ(use.cache_bytes, 5 * size);
    EXPECT_EQ(Server::get().traffic.opens, 6U);
    EXPECT_TRUE(warnings.empty());
}

TEST_F(CacheSource, reads_anywhere_fetch_whole_blocks_once) {
    const std::string& bytes = serve(url, size, 2);
    const auto source = open(url);
    EXPECT_EQ(part_of(*source, 100, 50), bytes.substr(100, 50));
    EXPECT_EQ(fetched(), cache_block_size);
    EXPECT_EQ(part_of(*source, 65000, 2000), bytes.substr(65000, 2000));
    EXPECT_EQ(fetched(), 0U);
    EXPECT_EQ(part_of(*source, cache_block_size - 7, cache_block_size + 20),
              bytes.substr(cache_block_size - 7, cache_block_size + 20));
    EXPECT_EQ(fetched(), size - cache_block_size);
    EXPECT_EQ(part_of(*source, size - 5, 100), bytes.substr(size - 5));
    EXPECT_EQ(part_of(*source, size, 100), "");
    EXPECT_EQ(part_of(*source, size + 1, 100), "");
    EXPECT_EQ(part_of(*source, 0, size), bytes);
    EXPECT_EQ(fetched(), 0U);
}

TEST_F(CacheSource, sequential_reading_uses_what_others_left) {
    const std::string& bytes = serve(url, 5 * cache_block_size, 3);
    EXPECT_EQ(part_of(*open(url), 2 * cache_block_size + 5, 5),
              bytes.substr(2 * cache_block_size + 5, 5));
    EXPECT_EQ(fetched(), cache_block_size);
    EXPECT_EQ(rest_of(*open(url), cache_block_size + 1000), bytes.substr(cache_block_size + 1000));
    EXPECT_EQ(fetched(), 3 * cache_block_size);
    EXPECT_EQ(rest_of(*open(url)), bytes);
    EXPECT_EQ(fetched(), cache_block_size);
}

// Readers take parts of what has a checksum, and what is left of it with the next read.
TEST_F(CacheSource, reads_of_any_size_at_any_place_give_the_same_bytes) {
    constexpr uint64_t piece = shf::cache_piece_size;
    const std::string& bytes = serve(url, size, 20);
    const auto source = open(url);
    ASSERT_EQ(rest_of(*source), bytes);
    for (const uint64_t offset : {0UL, 1UL, 511UL, piece - 1, piece, piece + 1, 5 * piece + 7,
                                  cache_block_size - 1, cache_block_size + piece - 3, size - 1})
        for (const size_t count : {1UL, 512UL, piece - 1, piece, piece + 1, 3 * piece + 5,
                                   40 * piece + 9, cache_block_size + 1})
            ASSERT_EQ(part_of(*source, offset, count), bytes.substr(offset, count))
                << count << " bytes at " << offset;
    // One reader, whose reads have another size each time, over gaps too.
    const auto reader = source->open_sequential(13);
    std::vector<uint8_t> buffer(3 * piece);
    uint64_t at = 13;
    for (size_t wanted = 1; at < size; wanted = wanted * 7 % 49999 + 1) {
        const size_t count = reader->read(std::span(buffer).first(std::min(wanted, buffer.size())));
        ASSERT_GT(count, 0U);
        ASSERT_EQ(0, std::memcmp(buffer.data(), bytes.data() + at, count)) << at;
        at += count;
        if (wanted % 5 == 0 && at + 700 < size) {
            ASSERT_TRUE(reader->skip(700));
            at += 700;
        }
    }
    EXPECT_EQ(use.cache_faults, 0U);
    EXPECT_EQ(fetched(), size);
}

// Nothing of a damaged piece is delivered, and what others before and after it have is.
TEST_F(CacheSource, a_read_that_ends_inside_a_damaged_piece_gives_none_of_it) {
    constexpr uint64_t piece = shf::cache_piece_size;
    const std::string& bytes = serve(url, 5 * piece + 3, 21);
    for (const uint64_t bad : {uint64_t{0}, piece + 100, 2 * piece - 1, 5 * piece + 2})
        for (const size_t chunk : {size_t{1000}, static_cast<size_t>(piece + 5), size_t{60000}}) {
            ASSERT_EQ(rest_of(*open(url)), bytes);
            const auto reader = open(url)->open_sequential(0);
            (void)fetched();
            const auto path = blocks().at(0);
            std::string file = file_bytes(path);
            file[file.size() - bytes.size() + bad] ^= 1;
            write_file(path, file);
            std::vector<uint8_t> buffer(chunk);
            std::string text;
            while (const size_t count = reader->read(buffer))
                text.append(reinterpret_cast<const char*>(buffer.data()), count);
            ASSERT_TRUE(text == bytes) << bad << " " << chunk;
            ASSERT_GT(fetched(), 0U);
        }
}

TEST_F(CacheSource, bytes_are_delivered_before_their_block_is_whole) {
    const std::string& bytes = serve(url, size, 4);
    const auto reader = open(url)->open_sequential(0);
    std::vector<uint8_t> buffer(1000);
    ASSERT_EQ(reader->read(buffer), 1000U);
    EXPECT_EQ(0, std::memcmp(buffer.data(), bytes.data(), 1000));
    EXPECT_EQ(fetched(), 1000U);
    EXPECT_TRUE(blocks().empty());
    EXPECT_EQ(parts().size(), 1U);
}

TEST_F(CacheSource, a_look_at_what_came_with_the_opening_waits_for_no_block) {
    const std::string& bytes = serve(url, size, 27);
    Server::get().shards[url].head = 65536;
    const auto source = open(url);
    EXPECT_EQ(part_of(*source, 0, 65536), bytes.substr(0, 65536));
    EXPECT_EQ(part_of(*source, 65000, 536), bytes.substr(65000, 536));
    EXPECT_EQ(fetched(), 0U);
    EXPECT_TRUE(blocks().empty());
    // One byte more is of a block, which is fetched and kept as ever.
    EXPECT_EQ(part_of(*source, 65000, 537), bytes.substr(65000, 537));
    EXPECT_EQ(fetched(), cache_block_size);
    EXPECT_EQ(blocks().size(), 1U);
    EXPECT_EQ(rest_of(*source), bytes);
    EXPECT_EQ(blocks().size(), 3U);
}

TEST_F(CacheSource, a_shard_that_came_whole_with_the_opening_is_kept) {
    const std::string& bytes = serve(url, 5000, 28);
    Server::get().shards[url].head = 5000;
    EXPECT_EQ(part_of(*open(url), 100, 50), bytes.substr(100, 50));
    EXPECT_EQ(blocks().size(), 1U);
}

TEST_F(CacheSource, only_the_first_opening_asks_for_the_first_bytes) {
    const std::string& bytes = serve(url, size, 29);
    Server::get().shards[url].head = 65536;
    const Traffic& traffic = Server::get().traffic;
    const auto first = open(url);
    EXPECT_EQ(traffic.brief, 0U);
    // Also while nothing is in the cache yet: the first one fetches it.
    EXPECT_EQ(rest_of(*open(url)), bytes);
    EXPECT_EQ(rest_of(*first), bytes);
    EXPECT_EQ(rest_of(*open(url)), bytes);
    EXPECT_EQ(traffic.opens, 3U);
    EXPECT_EQ(traffic.brief, 2U);
    // Another version is read as well.
    const std::string& other = serve(url, size, 30, "\"2\"");
    EXPECT_EQ(rest_of(*open(url)), other);
    EXPECT_EQ(traffic.opens, 4U);
    // What is not kept any more is opened as without a cache.
    serve(url, size, 31, "W/\"3\"");
    Server::get().shards[url].head = 65536;
    EXPECT_EQ(open(url)->at_hand(), 65536U);
    EXPECT_EQ(traffic.opens, 6U);
}

TEST_F(CacheSource, a_shard_that_cannot_be_opened_leaves_no_folder) {
    EXPECT_EQ(error_of([&] { open("test://host/none.tar"); }).first, SHF_E_NOT_FOUND);
    EXPECT_TRUE(std::filesystem::is_empty(root() + "/shards"));
}

TEST_F(CacheSource, a_reader_that_is_given_up_leaves_nothing_in_the_making) {
    serve(url, size, 4);
    {
        const auto reader = open(url)->open_sequential(0);
        std::vector<uint8_t> buffer(1000);
        ASSERT_EQ(reader->read(buffer), 1000U);
    }
    EXPECT_TRUE(parts().empty());
    EXPECT_TRUE(blocks().empty());
}

TEST_F(CacheSource, skipping_reads_on_at_the_right_byte) {
    const std::string& bytes = serve(url, 4 * cache_block_size, 5);
    for (int pass = 0; pass < 2; ++pass) {
        const auto reader = open(url)->open_sequential(10);
        std::vector<uint8_t> buffer(100);
        ASSERT_EQ(reader->read(buffer), 100U);
        ASSERT_TRUE(reader->skip(3 * cache_block_size - 500));
        ASSERT_EQ(reader->read(buffer), 100U);
        EXPECT_EQ(std::string(buffer.begin(), buffer.end()),
                  bytes.substr(3 * cache_block_size - 390, 100));
        EXPECT_FALSE(reader->skip(2 * cache_block_size));
    }
}

TEST_F(CacheSource, a_new_version_is_a_new_entry) {
    const std::string first = serve(url, size, 6, "\"a\"");
    const auto old = open(url);
    EXPECT_EQ(rest_of(*old), first);
    const std::string second = serve(url, size, 7, "\"b\"");
    EXPECT_EQ(rest_of(*open(url)), second);
    EXPECT_EQ(rest_of(*open(url)), second);
    // Who has opened the old one continues with it.
    EXPECT_EQ(rest_of(*old), first);
    EXPECT_EQ(blocks().size(), 6U);
}

TEST_F(CacheSource, the_same_last_component_is_another_shard) {
    const std::string a = serve("test://one/x/a.tar", size, 8),
                      b = serve("test://two/x/a.tar", size, 9);
    EXPECT_EQ(rest_of(*open("test://one/x/a.tar")), a);
    EXPECT_EQ(rest_of(*open("test://two/x/a.tar")), b);
    EXPECT_EQ(rest_of(*open("test://one/x/a.tar")), a);
    EXPECT_EQ(blocks().size(), 6U);
}

TEST_F(CacheSource, names_of_shards_have_no_secrets_and_are_those_of_signed_urls_too) {
    using shf::cache_url;
    EXPECT_EQ(cache_url("HTTPS://user:pw@Host/A.tar"), "https://host/A.tar");
    EXPECT_EQ(cache_url("https://h/a.tar?X-Amz-Signature=1&X-Amz-Date=2"), "https://h/a.tar");
    EXPECT_EQ(cache_url("https://h/a.tar?se=2030&sig=secret#x"), "https://h/a.tar");
    EXPECT_EQ(cache_url("s3://b/A.tar"), "s3://b/A.tar");
    EXPECT_NE(cache_url("ais://b/a?archpath=1"), cache_url("ais://b/a?archpath=2"));
    EXPECT_NE(cache_url("s3://b/a#1.tar"), cache_url("s3://b/a#2.tar"));
    EXPECT_NE(cache_url("s3://b/a?token=1"), cache_url("s3://b/a?token=2"));
    EXPECT_NE(cache_url("az://c/a?sig=1"), cache_url("az://c/a?sig=2"));
    EXPECT_NE(cache_url("abfss://c@a.dfs.core.windows.net/a"),
              cache_url("abfss://d@a.dfs.core.windows.net/a"));
    EXPECT_EQ(cache_url("https://a.blob.core.windows.net/c/a?sv=1&sig=1"),
              cache_url("https://a.blob.core.windows.net/c/a"));
    const std::string one = cache_url("https://h/get?file=a&token=secret");
    EXPECT_EQ(one, cache_url("https://h/get?file=a&token=other"));
    EXPECT_NE(one, cache_url("https://h/get?file=b"));
    EXPECT_EQ(one.find("secret"), one.npos);
    EXPECT_EQ(one.find("file"), one.npos);
}

TEST_F(CacheSource, no_file_of_the_cache_has_a_secret) {
    serve(url, 1000, 10);
    EXPECT_EQ(rest_of(*open(url + "?token=geheim&sig=geheim")).size(), 1000U);
    const auto all = files([](const std::string&) { return true; });
    ASSERT_GE(all.size(), 4U);
    for (const auto& file : all) {
        EXPECT_EQ(file.string().find("geheim"), std::string::npos);
        EXPECT_EQ(file_bytes(file).find("geheim"), std::string::npos) << file;
    }
}

TEST_F(CacheSource, a_shard_without_version_is_not_cached) {
    for (const char* version : {"", "W/\"1\""}) {
        const std::string& bytes = serve(url, size, 11, version);
        for (int i = 0; i < 2; ++i) EXPECT_EQ(rest_of(*open(url)), bytes);
        EXPECT_EQ(fetched(), 2 * size);
    }
    Server::get().shards[url].version = "\"1\"";
    Server::get().shards[url].seekable = false;
    rest_of(*open(url));
    EXPECT_TRUE(blocks().empty());
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_NE(warnings[0].find("not cached"), std::string::npos);
}

// ---- Damage -------------------------------------------------------------------------------------

TEST_F(CacheSource, a_flipped_bit_anywhere_is_found_and_the_block_fetched_again) {
    constexpr uint64_t small = 200000;
    const std::string& bytes = serve(url, small, 12);
    EXPECT_EQ(rest_of(*open(url)), bytes);
    ASSERT_EQ(blocks().size(), 1U);
    const std::string good = file_bytes(blocks()[0]);
    std::vector<size_t> places;
    for (size_t i = 0; i < 220; i += 5) places.push_back(i);  // the header, up to the zeros
    for (size_t i = 220; i < good.size(); i += 9973) places.push_back(i);
    places.push_back(good.size() - 1);
    fetched();
    for (const size_t place : places) {
        std::string bad = good;
        bad[place] = static_cast<char>(bad[place] ^ (1 << (place % 8)));
        write_file(blocks()[0], bad);
        // Sequential and random reading take turns.
        const auto source = open(url);
        if (place % 2 == 0)
            ASSERT_EQ(rest_of(*source, 0, 77777), bytes) << place;
        else
            ASSERT_EQ(part_of(*source, 0, small), bytes) << place;
        ASSERT_EQ(fetched(), small) << place;
        ASSERT_EQ(file_bytes(blocks()[0]), good);
    }
    EXPECT_EQ(use.cache_faults, places.size());
    EXPECT_EQ(warnings.size(), 1U);
}

TEST_F(CacheSource, torn_and_cut_blocks_are_fetched_again) {
    const std::string& bytes = serve(url, 200000, 13);
    EXPECT_EQ(rest_of(*open(url)), bytes);
    const std::string good = file_bytes(blocks()[0]);
    std::vector<std::string> torn = {"",
                                     "S",
                                     good.substr(0, 7),
                                     good.substr(0, 8),
                                     good.substr(0, 63),
                                     good.substr(0, 64),
                                     good.substr(0, 4095),
                                     good.substr(0, 4096),
                                     good.substr(0, 70000),
                                     good.substr(0, good.size() - 1),
                                     good + "x",
                                     std::string(good.size(), '\0'),
                                     good.substr(0, 4096) + std::string(good.size() - 4096, '\0'),
                                     std::string(4096, '\0') + good.substr(4096)};
    std::string huge = good;
    std::memset(huge.data() + 16, 0xFF, 8);
    torn.push_back(huge);
    for (const std::string& bad : torn) {
        write_file(blocks()[0], bad);
        ASSERT_EQ(rest_of(*open(url)), bytes);
        ASSERT_EQ(file_bytes(blocks()[0]), good);
    }
    EXPECT_EQ(use.cache_faults, torn.size());
}

TEST_F(CacheSource, a_block_of_another_shard_under_this_name_is_not_served) {
    // As when two hashes collide.
    const std::string a = serve("test://h/aa.tar", 200000, 14),
                      b = serve("test://h/bb.tar", 200000, 15);
    const std::string long_name = "test://h/" + std::string(5000, 'b') + ".tar";
    const std::string c = serve(long_name, 200000, 16);
    EXPECT_EQ(rest_of(*open("test://h/aa.tar")), a);
    const auto mine = blocks();
    for (const std::string& other : {std::string("test://h/bb.tar"), long_name}) {
        rest_of(*open(other));
        for (const auto& block : blocks()) {
            if (block == mine[0]) continue;
            std::filesystem::copy_file(block, mine[0],
                                       std::filesystem::copy_options::overwrite_existing);
        }
        EXPECT_EQ(rest_of(*open("test://h/aa.tar")), a);
    }
    EXPECT_EQ(rest_of(*open("test://h/bb.tar")), b);
    EXPECT_EQ(rest_of(*open(long_name)), c);
    EXPECT_EQ(use.cache_faults, 0U);  // whole, but of another one
}

TEST_F(CacheSource, wrong_twice_is_integrity) {
    const std::string& bytes = serve(url, 200000, 17);
    const auto source = open(url);
    EXPECT_EQ(part_of(*source, 0, 200000), bytes);
    const auto damage = [&] {
        std::string bad = file_bytes(blocks()[0]);
        bad[10000] ^= 1;
        write_file(blocks()[0], bad);
    };
    damage();
    EXPECT_EQ(part_of(*source, 0, 200000), bytes);
    damage();
    const auto [code, text] = error_of([&] { part_of(*source, 0, 200000); });
    EXPECT_EQ(code, SHF_E_INTEGRITY);
    EXPECT_NE(text.find("help: "), std::string::npos) << text;
    EXPECT_EQ(use.cache_faults, 2U);
}

TEST_F(CacheSource, a_damaged_label_is_written_again) {
    const std::string& bytes = serve(url, 1000, 18);
    rest_of(*open(url));
    const auto label = files([](const std::string& name) { return name == "version"; });
    ASSERT_EQ(label.size(), 1U);
    const std::string good = file_bytes(label[0]);
    for (size_t i = 0; i < good.size(); i += 5) {
        std::string bad = good;
        bad[i] ^= 4;
        write_file(label[0], bad);
        ASSERT_EQ(rest_of(*open(url)), bytes);
        ASSERT_EQ(file_bytes(label[0]), good);
    }
}

// ---- Waiting ------------------------------------------------------------------------------------

TEST_F(CacheSource, a_cancel_ends_the_wait_for_another_reader) {
    serve(url, size, 19);
    const auto source = open(url);
    const auto leader = source->open_sequential(0);
    std::vector<uint8_t> buffer(1000);
    ASSERT_EQ(leader->read(buffer), 1000U);
    const auto waiting = source->open_sequential(0);
    std::chrono::steady_clock::time_point asked;
    std::thread canceller([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(150));
        asked = std::chrono::steady_clock::now();
        cancel.request();
    });
    const auto [code, text] = error_of([&] { (void)waiting->read(buffer); });
    const auto late = std::chrono::steady_clock::now() - asked;
    canceller.join();
    EXPECT_EQ(code, SHF_E_CANCELLED);
    EXPECT_LT(late, std::chrono::milliseconds(100));
}

TEST_F(CacheSource, nobody_waits_for_one_who_does_not_go_on) {
    const std::string& bytes = serve(url, size, 20);
    const auto source = open(url);
    const auto leader = source->open_sequential(0);  // as in an iterator that is kept and not used
    std::vector<uint8_t> buffer(1000);
    ASSERT_EQ(leader->read(buffer), 1000U);
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(rest_of(*source), bytes);
    EXPECT_EQ(part_of(*source, 5, 10), bytes.substr(5, 10));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
    // What it says afterwards is right as well.
    std::string text(reinterpret_cast<const char*>(buffer.data()), 1000);
    while (const size_t count = leader->read(buffer))
        text.append(reinterpret_cast<const char*>(buffer.data()), count);
    EXPECT_EQ(text, bytes);
}

TEST_F(CacheSource, locks_are_of_readers_and_not_of_processes) {
    const int root = ::open((folder / "").c_str(), O_RDONLY | O_DIRECTORY);
    shf::BlockLocks a, b;
    a.open(root, "lock");
    b.open(root, "lock");
    EXPECT_EQ(a.try_lock(10, 5), 5U);
    EXPECT_EQ(b.try_lock(10, 5), 0U);
    EXPECT_EQ(b.try_lock(14, 5), 0U);
    EXPECT_EQ(b.try_lock(7, 8), 3U);
    EXPECT_EQ(b.try_lock(15, 2), 2U);
    {  // closing another descriptor of the file changes nothing
        shf::BlockLocks c;
        c.open(root, "lock");
    }
    EXPECT_EQ(b.try_lock(12, 1), 0U);
    a.unlock(12, 1);
    EXPECT_EQ(b.try_lock(12, 2), 1U);
    ::close(root);
}

TEST_F(CacheSource, threads_that_read_one_shard_fetch_it_once) {
    const std::string& bytes = serve(url, 6 * cache_block_size, 21);
    Server::get().traffic.delay_us = 300;
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 6; ++t)
        threads.emplace_back([&, t] {
            const auto source = open(url);
            if (t % 2 == 0 ? rest_of(*source) != bytes : part_of(*source, 0, bytes.size()) != bytes)
                ++wrong;
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_LE(fetched(), bytes.size() * 102 / 100);
}

// ---- Without the server -------------------------------------------------------------------------

TEST_F(CacheSource, stale_ok_reads_the_version_that_was_opened_last) {
    const std::string a = serve(url, size, 22, "\"a\"");
    rest_of(*open(url));
    const std::string b = serve(url, size, 23, "\"b\"");
    rest_of(*open(url));
    for (const int32_t code : {SHF_E_NET_TRANSIENT, SHF_E_TIMEOUT}) {
        Server::get().traffic.down = code;
        options.stale_ok = false;
        EXPECT_EQ(error_of([&] { open(url); }).first, code);
        options.stale_ok = true;
        const auto source = open(url);
        EXPECT_EQ(source->identity().version, "\"b\"");
        EXPECT_EQ(source->size(), size);
        EXPECT_EQ(rest_of(*source), b);
        EXPECT_EQ(part_of(*source, 1000, 5000), b.substr(1000, 5000));
    }
    EXPECT_EQ(use.stale, 2U);
    // The first version was opened last.
    Server::get().traffic.down = 0;
    serve(url, size, 22, "\"a\"");
    open(url);
    Server::get().traffic.down = SHF_E_NET_TRANSIENT;
    EXPECT_EQ(rest_of(*open(url)), a);
}

TEST_F(CacheSource, stale_ok_is_for_faults_of_the_network_alone) {
    serve(url, 1000, 24);
    rest_of(*open(url));
    options.stale_ok = true;
    for (const int32_t code : {SHF_E_NET_PERMANENT, SHF_E_AUTH, SHF_E_TLS, SHF_E_NOT_FOUND}) {
        Server::get().traffic.down = code;
        EXPECT_EQ(error_of([&] { open(url); }).first, code);
    }
    Server::get().traffic.down = SHF_E_NET_TRANSIENT;
    EXPECT_EQ(error_of([&] { open("test://h/never.tar"); }).first, SHF_E_NET_TRANSIENT);
}

TEST_F(CacheSource, stale_ok_says_what_is_missing) {
    const std::string& bytes = serve(url, size, 25);
    part_of(*open(url), 0, 10);
    options.stale_ok = true;
    Server::get().traffic.down = SHF_E_NET_TRANSIENT;
    const auto source = open(url);
    EXPECT_EQ(part_of(*source, 0, 10), bytes.substr(0, 10));
    const auto [code, text] = error_of([&] { part_of(*source, cache_block_size, 10); });
    EXPECT_EQ(code, SHF_E_NET_TRANSIENT);
    EXPECT_NE(text.find("the cache has not all bytes"), std::string::npos) << text;
    EXPECT_EQ(error_of([&] { rest_of(*source); }).first, SHF_E_NET_TRANSIENT);
}

TEST_F(CacheSource, faults_of_the_server_pass_through_and_leave_nothing) {
    const std::string& bytes = serve(url, size, 26);
    Server::get().on_read = [](uint64_t offset) {
        if (offset >= cache_block_size + 5000) throw shf::Error(SHF_E_NET_TRANSIENT, "cut off");
    };
    EXPECT_EQ(error_of([&] { rest_of(*open(url), 0, 1000); }).first, SHF_E_NET_TRANSIENT);
    EXPECT_EQ(blocks().size(), 1U);
    EXPECT_TRUE(parts().empty());
    Server::get().on_read = {};
    fetched();
    EXPECT_EQ(rest_of(*open(url)), bytes);
    EXPECT_EQ(fetched(), size - cache_block_size);
}

}  // namespace
