// Memory of samples that were released is used again, within its bounds and by any thread.
#include "core/recycler.h"

#include <malloc.h>
#include <sys/resource.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using shf::Recycler;
using shf::StorageRef;

struct Drop {
    void operator()(Recycler* memory) const { memory->drop(); }
};
using Handle = std::unique_ptr<Recycler, Drop>;

Handle make(uint64_t keep = 64 << 20, uint64_t most = 0) {
    return Handle(Recycler::make(keep, most));
}

// Pieces of this size come fresh from the system, filled with zeros: what was written into one is
// seen in the next only when it is the same.
constexpr size_t large = 4 << 20;
constexpr uint64_t mark = 0x7368617264666565;

void write_mark(const StorageRef& piece) {
    std::memcpy(piece->data, &mark, sizeof mark);
}
bool has_mark(const StorageRef& piece) {
    return std::memcmp(piece->data, &mark, sizeof mark) == 0;
}

TEST(Recycler, pieces_are_large_enough_and_not_wasteful) {
    const Handle memory = make();
    for (size_t size = 0; size < (70 << 20); size = size * 9 / 7 + 1) {
        for (const size_t wanted : {size, size + 1}) {
            const StorageRef piece = memory->acquire(wanted);
            EXPECT_GE(piece->capacity, wanted);
            EXPECT_LE(piece->capacity,
                      wanted <= 1024 ? std::max<size_t>(wanted, 1) : wanted + wanted / 4 + 1);
            if (wanted >= 32768) {
                EXPECT_EQ(reinterpret_cast<uintptr_t>(piece->data) % 4096, 0U) << wanted;
            }
            if (piece->capacity < (8 << 20)) std::memset(piece->data, 0xff, piece->capacity);
        }
    }
    for (size_t bits = 10; bits <= 25; ++bits) {
        const size_t size = size_t{1} << bits;
        EXPECT_EQ(memory->acquire(size)->capacity, size);
    }
}

TEST(Recycler, used_memory_comes_back_the_last_first) {
    const Handle memory = make();
    write_mark(memory->acquire(large));
    EXPECT_TRUE(has_mark(memory->acquire(large - 100)));  // of the same size, rounded
    EXPECT_FALSE(has_mark(memory->acquire(large * 2)));
    EXPECT_FALSE(has_mark(memory->acquire(large + 1)));
    EXPECT_TRUE(has_mark(memory->acquire(large)));  // is still there
    const uint8_t* second = nullptr;
    {
        const StorageRef first = memory->acquire(large);
        StorageRef other = memory->acquire(large);
        second = other->data;
        EXPECT_NE(first->data, second);
        write_mark(other);
        const StorageRef shared = other;
        other = StorageRef();
        EXPECT_NE(memory->acquire(large)->data, second);  // in use
    }
    EXPECT_TRUE(has_mark(memory->acquire(large)));
}

TEST(Recycler, keeps_no_more_than_its_bound) {
    const auto kept = [](uint64_t keep) {
        const Handle memory = make(keep);
        std::vector<StorageRef> pieces;
        for (int i = 0; i < 10; ++i) write_mark(pieces.emplace_back(memory->acquire(large)));
        pieces.clear();
        for (int i = 0; i < 10; ++i) pieces.push_back(memory->acquire(large));
        return std::ranges::count_if(pieces, has_mark);
    };
    EXPECT_EQ(kept(0), 0);
    EXPECT_EQ(kept(large - 1), 0);
    EXPECT_EQ(kept(large), 1);
    EXPECT_EQ(kept(4 * large), 4);
    EXPECT_EQ(kept(100 * large), 10);
    // What left the shelf makes room for others.
    const Handle memory = make(large);
    write_mark(memory->acquire(large));
    const StorageRef used = memory->acquire(large);
    EXPECT_TRUE(has_mark(used));
    write_mark(memory->acquire(large / 2 + 1));
    EXPECT_TRUE(has_mark(memory->acquire(large / 2 + 1)));
}

// What is asked for at once comes back, and as much again, up to the bound.
TEST(Recycler, keeps_what_is_expected) {
    const auto kept = [](uint64_t expected, uint64_t most) {
        const Handle memory = make(large, most);
        memory->expect(expected);
        memory->expect(1);
        std::vector<StorageRef> pieces;
        for (int i = 0; i < 10; ++i) write_mark(pieces.emplace_back(memory->acquire(large)));
        pieces.clear();
        for (int i = 0; i < 10; ++i) pieces.push_back(memory->acquire(large));
        return std::ranges::count_if(pieces, has_mark);
    };
    EXPECT_EQ(kept(0, 100 * large), 1);
    EXPECT_EQ(kept(3 * large, 100 * large), 6);
    EXPECT_EQ(kept(3 * large, 5 * large), 5);
    EXPECT_EQ(kept(UINT64_MAX, 5 * large), 5);
    EXPECT_EQ(kept(3 * large, 0), 1);
}

long page_faults() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

// Users let a batch go when they have the next, and the last one when all are done: two batches
// come back at once.
TEST(Recycler, two_batches_come_back) {
    const Handle memory = make();
    const auto pass = [&memory] {
        std::vector<StorageRef> last;
        for (int batch = 0; batch < 3; ++batch) {
            std::vector<StorageRef> next;
            for (int i = 0; i < 256; ++i) {
                next.push_back(memory->acquire(100000));
                std::memset(next.back()->data, batch, 100000);
            }
            last = std::move(next);
        }
    };
    pass();
    ::malloc_trim(0);  // what is in the heap again comes fresh from the system
    const long before = page_faults();
    pass();
    EXPECT_LT(page_faults() - before, 1000);  // there are 6000 pages in a batch
}

// More pieces than a shelf has places.
TEST(Recycler, a_full_shelf) {
    const Handle memory = make(uint64_t{1} << 40);
    std::vector<StorageRef> pieces;
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < 1500; ++i) pieces.push_back(memory->acquire(20000));
        pieces.clear();
    }
    const uint8_t* last = nullptr;
    {
        const StorageRef piece = memory->acquire(20000);
        last = piece->data;
    }
    EXPECT_EQ(memory->acquire(20000)->data, last);
}

TEST(Recycler, pieces_outlive_their_owner) {
    StorageRef piece, large_piece;
    {
        const Handle memory = make();
        piece = memory->acquire(20000);
        large_piece = memory->acquire(large);
        write_mark(memory->acquire(large));  // goes with the recycler
    }
    std::memset(piece->data, 1, piece->capacity);
    std::memset(large_piece->data, 1, large_piece->capacity);
}

uint64_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    uint64_t pages = 0, resident = 0;
    statm >> pages >> resident;
    return resident * 4096;
}

TEST(Recycler, frees_everything_in_the_end) {
    const uint64_t before = resident_bytes();
    for (int i = 0; i < 20; ++i) {
        const Handle memory = make(1 << 30);
        std::vector<StorageRef> pieces;
        for (int k = 0; k < 10; ++k) {
            pieces.push_back(memory->acquire(large));
            std::memset(pieces.back()->data, 1, large);
        }
    }
    EXPECT_LT(resident_bytes(), before + 10 * large);
}

// No two threads ever have the same piece, and afterwards the memory is still recycled.
TEST(Recycler, threads_share_nothing) {
    constexpr int threads = 8, rounds = 20000;
    const Handle memory = make();
    const size_t sizes[] = {17000, 17001, 40000, large};
    std::atomic<int> broken{0};
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t)
        all.emplace_back([&, t] {
            std::vector<StorageRef> held;
            for (int i = 0; i < rounds; ++i) {
                const uint64_t mine = static_cast<uint64_t>(t) << 32 | static_cast<uint64_t>(i);
                const StorageRef piece = memory->acquire(sizes[(i * 7 + t) % 4]);
                std::memcpy(piece->data, &mine, sizeof mine);
                if (i % 3 == 0) held.push_back(piece);
                if (held.size() == 5) held.clear();
                if (std::memcmp(piece->data, &mine, sizeof mine) != 0) ++broken;
            }
        });
    for (std::thread& thread : all) thread.join();
    EXPECT_EQ(broken.load(), 0);
}

// A piece that no thread sees any more would keep its place, and those that follow would go.
TEST(Recycler, threads_lose_nothing) {
    for (int round = 0; round < 10; ++round) {
        const Handle memory = make();
        std::vector<std::thread> all;
        for (int t = 0; t < 4; ++t)
            all.emplace_back([&] {
                for (int i = 0; i < 50000; ++i) (void)memory->acquire(large);
            });
        for (std::thread& thread : all) thread.join();
        for (int i = 0; i < 10; ++i) (void)memory->acquire(large);
        write_mark(memory->acquire(large));
        EXPECT_TRUE(has_mark(memory->acquire(large))) << "round " << round;
    }
}

}  // namespace
