// Payload memory: page-aligned pieces that are recycled, shared by reference count, and counted
// against the `memory` option while the library holds them.
//
// Why recycled and page-aligned: read(2) of cached files copies 19 GB/s into aligned memory that is
// in use already, and 1 GB/s into fresh memory, whose pages the kernel must clear first.
#pragma once

#include "core/cancel.h"
#include "core/options.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace shf {

class Pool;
class Recycler;

// One piece of payload memory. Shared through StorageRef; goes back to its pool with the last one.
struct Storage {
    std::atomic<uint32_t> references{1};
    std::atomic<bool> held{true};  // counts in Pool::held()
    Pool* pool;                    // NULL: a piece of its own, see unpooled() ...
    Recycler* recycler = nullptr;  // ... or one of these
    uint8_t* data;
    size_t capacity;
    Storage* next = nullptr;  // while it waits to be freed
    // Of whom the memory is; NULL: it is the piece's own. Such a piece is never written.
    std::shared_ptr<const void> owner{};
};

class StorageRef {
  public:
    StorageRef() = default;
    explicit StorageRef(Storage* adopted) : storage_(adopted) {}
    StorageRef(const StorageRef& other) : storage_(other.storage_) {
        if (storage_) storage_->references.fetch_add(1, std::memory_order_relaxed);
    }
    StorageRef(StorageRef&& other) noexcept : storage_(std::exchange(other.storage_, nullptr)) {}
    StorageRef& operator=(StorageRef other) noexcept {
        std::swap(storage_, other.storage_);
        return *this;
    }
    ~StorageRef();

    explicit operator bool() const { return storage_ != nullptr; }
    Storage* operator->() const { return storage_; }
    bool operator==(const StorageRef&) const = default;

    // The piece now belongs to the user: it no longer counts as held. Any thread, any number of
    // times.
    void hand_out() const;

  private:
    Storage* storage_ = nullptr;
};

// A piece of memory of its own, which counts nowhere and goes back to the system with its last
// reference. No locks, so that forked children may use it. Throws std::bad_alloc.
StorageRef unpooled(size_t size);

// A piece of what `owner` has in memory, which counts nowhere.
StorageRef borrowed(std::shared_ptr<const void> owner, std::span<const uint8_t> bytes);

// The payload memory of one stream. Lives until the stream and all its pieces are gone. Any thread.
class Pool {
  public:
    // With an allocator in `options`, memory comes from it, and it is called only by the thread
    // that is inside a call, and by close() and after it.
    static Pool* make(const Options& options);  // one owner; release with drop()
    void drop() noexcept;

    // A piece of at least `size` bytes, page-aligned when it is large, with undefined contents.
    // With a custom allocator this may wait for serve() in another thread; `cancel` ends the wait.
    // Throws std::bad_alloc or Error(CANCELLED).
    StorageRef acquire(size_t size, const Cancel& cancel);

    // A piece of what `owner` has in memory. It counts as held, so that readers run no further
    // ahead than with memory of their own. Throws std::bad_alloc.
    StorageRef borrow(std::shared_ptr<const void> owner, std::span<const uint8_t> bytes);

    // The calling thread is inside a call of the library, and may run callbacks, until leave().
    void enter() noexcept { caller_.store(std::this_thread::get_id(), std::memory_order_relaxed); }
    void leave() noexcept { caller_.store({}, std::memory_order_relaxed); }
    // Calls the custom allocator for the threads that wait in acquire(), and for what others let
    // go. Between enter() and leave(). Nothing to do without a custom allocator.
    void serve();
    [[nodiscard]] bool wants_service() const { return wanted_.load(std::memory_order_acquire); }
    // Called, without locks, when a thread begins to wait for serve(). Set before threads start.
    std::function<void()> on_wait;
    // Ends the waits in acquire(); the stream was cancelled.
    void interrupt();

    // Bytes of pieces in use that were not handed out, now and at most.
    [[nodiscard]] uint64_t held() const { return held_.load(std::memory_order_seq_cst); }
    [[nodiscard]] uint64_t peak() const { return peak_.load(std::memory_order_relaxed); }
    // Frees the recycled pieces that wait for use, and keeps none from now on: the stream is
    // closed.
    void close() noexcept;

  private:
    friend class StorageRef;
    struct Request {
        size_t capacity;
        uint8_t* data = nullptr;
        bool done = false;
    };
    static constexpr size_t classes = (26 - 8) * 8 + 1;  // from 2^8 to 2^26 bytes, eight steps each

    explicit Pool(const Options& options);
    ~Pool() = default;
    void put_back(Storage* storage) noexcept;
    void free_memory(uint8_t* data, size_t capacity) noexcept;
    void destroy(Storage* storage) noexcept;
    void add_held(uint64_t bytes);
    Storage* take(size_t number) noexcept;
    Storage* take_large(size_t capacity) noexcept;
    void let_go(std::vector<Storage*>& list) noexcept;
    void retire(Storage* storage) noexcept;
    void free_retired() noexcept;
    [[nodiscard]] bool may_call_back() const {
        return caller_.load(std::memory_order_relaxed) == std::this_thread::get_id();
    }
    uint8_t* request(size_t capacity, std::unique_lock<std::mutex>& lock, const Cancel& cancel);

    const uint64_t budget_;
    const shf_alloc_fn alloc_;
    const shf_free_fn release_;
    void* const alloc_ctx_;
    const uint64_t fork_generation_;
    std::atomic<uint64_t> owners_{1};  // the stream, and every piece that exists
    std::atomic<uint64_t> held_{0}, peak_{0};
    std::atomic<bool> wanted_{false};
    std::atomic<std::thread::id> caller_{};

    std::mutex mutex_;  // below
    std::array<std::vector<Storage*>, classes> recycled_;
    std::vector<Storage*> large_;  // above those; used again for the same size
    uint64_t recycled_bytes_ = 0;
    bool closed_ = false;
    std::deque<Request*> requests_;
    Storage* retired_ = nullptr;  // to be given to the custom allocator by serve()
    std::condition_variable served_;
};

}  // namespace shf
