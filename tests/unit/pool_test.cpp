// Payload memory: recycling, the count of what is held, the custom allocator.
#include "core/error.h"
#include "core/memory.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

namespace {

using shf::Cancel;
using shf::Options;
using shf::Pool;
using shf::StorageRef;

struct PoolDrop {
    void operator()(Pool* pool) const {
        pool->close();
        pool->drop();
    }
};
using PoolHandle = std::unique_ptr<Pool, PoolDrop>;

PoolHandle make_pool(const char* memory = "256MiB") {
    Options options;
    options.set("memory", memory);
    return PoolHandle(Pool::make(options));
}

TEST(Pool, pieces_are_large_enough_and_not_wasteful) {
    const PoolHandle pool = make_pool();
    const Cancel cancel;
    std::vector<size_t> sizes = {1,     255,   256,   257,     4095,         4096,
                                 32767, 32768, 32769, 1 << 20, (1 << 20) + 1};
    for (size_t size = 3; size < 40000000; size = size * 5 / 3) sizes.push_back(size);
    for (const size_t size : sizes) {
        const StorageRef piece = pool->acquire(size, cancel);
        EXPECT_GE(piece->capacity, size);
        EXPECT_LE(piece->capacity, std::max<size_t>(size + size / 8 + 1, size < 256 ? 256 : 0) +
                                       (size > 32768 ? 4096 : 0));
        if (size >= 32768) {
            EXPECT_EQ(reinterpret_cast<uintptr_t>(piece->data) % 4096, 0U) << size;
        }
        std::memset(piece->data, 0xff, piece->capacity);
        EXPECT_EQ(pool->held(), piece->capacity);
    }
    EXPECT_EQ(pool->held(), 0U);
}

TEST(Pool, used_memory_comes_back) {
    const PoolHandle pool = make_pool();
    const Cancel cancel;
    const uint8_t* first = pool->acquire(300000, cancel)->data;
    EXPECT_EQ(pool->acquire(299999, cancel)->data, first);
    const StorageRef a = pool->acquire(300000, cancel), b = pool->acquire(300000, cancel);
    EXPECT_EQ(a->data, first);
    EXPECT_NE(b->data, first);
}

// Batches of videos: the kernel clears fresh pages as slowly as decoders write them.
TEST(Pool, large_memory_comes_back_for_the_same_size) {
    constexpr size_t size = 70000000;
    const PoolHandle pool = make_pool();
    const Cancel cancel;
    StorageRef first = pool->acquire(size, cancel), second = pool->acquire(size, cancel);
    const std::set<const uint8_t*> used = {first->data, second->data};
    const size_t capacity = first->capacity;
    EXPECT_LT(capacity, size + 4096);
    first = {};
    second = {};
    EXPECT_EQ(pool->held(), 0U);
    (void)pool->acquire(1000, cancel);
    first = pool->acquire(size, cancel);
    second = pool->acquire(size - 1000, cancel);  // the same number of pages
    EXPECT_EQ((std::set<const uint8_t*>{first->data, second->data}), used);
    EXPECT_EQ(pool->held(), 2 * capacity);
}

TEST(Pool, counts_what_is_held) {
    const PoolHandle pool = make_pool();
    const Cancel cancel;
    {
        const StorageRef a = pool->acquire(1 << 20, cancel);
        StorageRef b = pool->acquire(1 << 20, cancel);
        EXPECT_EQ(pool->held(), uint64_t{2} << 20);
        const StorageRef also_b = b;
        b.hand_out();
        also_b.hand_out();  // the same piece: counted once
        EXPECT_EQ(pool->held(), uint64_t{1} << 20);
    }
    EXPECT_EQ(pool->held(), 0U);
    EXPECT_EQ(pool->peak(), uint64_t{2} << 20);
    const StorageRef again = pool->acquire(1 << 20, cancel);  // recycled, and held again
    EXPECT_EQ(pool->held(), uint64_t{1} << 20);
}

TEST(Pool, pieces_outlive_the_stream) {
    PoolHandle pool = make_pool();
    const Cancel cancel;
    StorageRef small = pool->acquire(100, cancel), large = pool->acquire(100000, cancel);
    pool.reset();
    std::memset(small->data, 1, 100);
    std::memset(large->data, 1, 100000);
    small = {};
    std::thread([piece = std::move(large)]() mutable { piece = {}; }).join();
}

// ---- Custom allocator ---------------------------------------------------------------------------

struct Heap {
    std::set<void*> live;
    std::set<std::thread::id> callers;
    size_t allocations = 0;
    bool fail = false;
};

void* heap_alloc(void* ctx, size_t size, size_t alignment) {
    auto* heap = static_cast<Heap*>(ctx);
    heap->callers.insert(std::this_thread::get_id());
    if (heap->fail) return nullptr;
    ++heap->allocations;
    void* data = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    heap->live.insert(data);
    return data;
}

void heap_free(void* ctx, void* data, size_t) {
    auto* heap = static_cast<Heap*>(ctx);
    heap->callers.insert(std::this_thread::get_id());
    EXPECT_EQ(heap->live.erase(data), 1U);
    std::free(data);
}

PoolHandle make_pool(Heap& heap, const char* memory = "256MiB") {
    Options options;
    options.set("memory", memory);
    options.alloc = heap_alloc;
    options.release = heap_free;
    options.alloc_ctx = &heap;
    return PoolHandle(Pool::make(options));
}

// Runs `work` on another thread while this one serves it.
template <typename Work>
void serve_while(Pool& pool, Work work) {
    std::atomic<bool> done{false};
    std::thread worker([&] {
        work();
        done = true;
    });
    pool.enter();
    while (!done) {
        pool.serve();
        std::this_thread::yield();
    }
    pool.leave();
    worker.join();
}

TEST(PoolAllocator, the_thread_inside_a_call_allocates_itself) {
    Heap heap;
    const Cancel cancel;
    {
        const PoolHandle pool = make_pool(heap);
        pool->enter();
        const StorageRef piece = pool->acquire(5000, cancel);
        pool->leave();
        EXPECT_TRUE(heap.live.contains(piece->data));
    }
    EXPECT_TRUE(heap.live.empty());
}

TEST(PoolAllocator, large_pieces_wait_only_for_their_size_and_within_the_budget) {
    Heap heap;
    const Cancel cancel;
    constexpr size_t size = 70000000;
    const PoolHandle pool = make_pool(heap, "256MiB");
    pool->enter();
    (void)pool->acquire(size, cancel);
    (void)pool->acquire(size, cancel);
    EXPECT_EQ(heap.allocations, 1U);
    (void)pool->acquire(size + 10000, cancel);  // of another size: what waited goes
    EXPECT_EQ(heap.allocations, 2U);
    EXPECT_EQ(heap.live.size(), 1U);
    {
        const StorageRef one = pool->acquire(size, cancel), other = pool->acquire(size, cancel);
        const StorageRef third = pool->acquire(size, cancel);
        one.hand_out();  // as batches are that the user has
        other.hand_out();
        third.hand_out();
        const StorageRef fourth = pool->acquire(size, cancel);
    }
    EXPECT_EQ(heap.live.size(), 3U);  // four are above the budget
    {
        // Small ones that need the room.
        std::vector<StorageRef> small;
        for (int i = 0; i < 200; ++i) small.push_back(pool->acquire(1 << 20, cancel));
        EXPECT_EQ(heap.live.size(), 200U);
    }
    pool->leave();
}

TEST(PoolAllocator, other_threads_are_served) {
    Heap heap;
    const Cancel cancel;
    {
        const PoolHandle pool = make_pool(heap, "1MiB");
        std::atomic<int> announced{0};
        pool->on_wait = [&] { ++announced; };
        serve_while(*pool, [&] {
            // Many sizes in a small budget: pieces are freed from this thread as well.
            for (size_t round = 0; round < 20; ++round)
                for (size_t size = 1000; size < 400000; size *= 2) {
                    const StorageRef piece = pool->acquire(size + round * 3000, cancel);
                    std::memset(piece->data, 1, size);
                }
        });
        EXPECT_GT(announced, 0);
    }
    EXPECT_GT(heap.allocations, 9U);
    EXPECT_TRUE(heap.live.empty());
    EXPECT_EQ(heap.callers, std::set{std::this_thread::get_id()});
}

TEST(PoolAllocator, null_is_bad_alloc_everywhere) {
    Heap heap;
    heap.fail = true;
    const Cancel cancel;
    const PoolHandle pool = make_pool(heap);
    pool->enter();
    EXPECT_THROW(pool->acquire(100, cancel), std::bad_alloc);
    pool->leave();
    serve_while(*pool, [&] { EXPECT_THROW(pool->acquire(100, cancel), std::bad_alloc); });
    EXPECT_EQ(pool->held(), 0U);
}

TEST(PoolAllocator, cancel_ends_the_wait_for_service) {
    Heap heap;
    Cancel cancel;
    const PoolHandle pool = make_pool(heap);
    std::thread worker([&] {
        try {
            (void)pool->acquire(100, cancel);
            ADD_FAILURE() << "nobody serves";
        } catch (const shf::Error& error) {
            EXPECT_EQ(error.code(), SHF_E_CANCELLED);
        }
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    cancel.request();
    pool->interrupt();
    worker.join();
    pool->serve();
    EXPECT_EQ(heap.allocations, 0U);
}

}  // namespace
