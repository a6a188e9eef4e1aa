#include "core/memory.h"

#include "core/error.h"
#include "core/fork.h"
#include "core/recycler.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <new>
#include <utility>

namespace shf {

namespace {

constexpr size_t page = 4096;
constexpr size_t cache_line = 64;
// From this size on pieces are pages of their own and go back to the system when they are freed;
// smaller ones come from the heap, where fresh memory costs little.
constexpr size_t mapped_from = 32 * 1024;
constexpr size_t smallest = 256;
// Above this size a piece is not rounded up by more than a page, and used again only for the same
// size: batches of one shape have it, members as a rule do not.
constexpr size_t largest_rounded = 64 * 1024 * 1024;
constexpr size_t no_class = SIZE_MAX;
constexpr size_t populated_to = 512 * 1024;
constexpr size_t huge_from = 2 * 1024 * 1024;

// Sizes are rounded up to eight steps per power of two, so that pieces can be used again for
// similar sizes at a waste of at most 1/8. Returns the class and sets `size` to its capacity.
size_t size_class(size_t& size) {
    if (size <= smallest) {
        size = smallest;
        return 0;
    }
    const auto exponent = static_cast<size_t>(std::bit_width(size - 1)) - 1;  // 2^exponent < size
    size_t step = size_t{1} << (exponent - 3);
    if (size > mapped_from) step = std::max(step, page);
    if (size > largest_rounded) {
        size = (size + page - 1) / page * page;
        return no_class;
    }
    size = (size + step - 1) / step * step;
    const size_t eighth = (size - (size_t{1} << exponent)) >> (exponent - 3);  // 1..8
    return (exponent - 8) * 8 + eighth;
}

// Memory of `size` bytes from the system, aligned to 64 bytes, and to a page from mapped_from on.
// Throws std::bad_alloc.
uint8_t* system_memory(size_t size) {
    if (size < mapped_from) {
        void* data = nullptr;
        if (::posix_memalign(&data, cache_line, size) != 0) throw std::bad_alloc();
        return static_cast<uint8_t*>(data);
    }
    // Slabs will be filled whole: their pages come at once, not by a fault for each.
    const int populate = size <= populated_to ? MAP_POPULATE : 0;
    void* mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | populate, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    // Large pieces in large pages: fresh memory comes ten times as fast. Advice may fail.
    if (size >= huge_from) (void)::madvise(mapped, size, MADV_HUGEPAGE);
    return static_cast<uint8_t*>(mapped);
}

void free_system_memory(uint8_t* data, size_t size) noexcept {
    if (size >= mapped_from)
        ::munmap(data, size);
    else
        std::free(data);
}

static_assert(sizeof(Storage) <= cache_line);

StorageRef unpooled_piece(Storage* storage, size_t size) {
    storage->held = false;
    storage->pool = nullptr;
    storage->capacity = size;
    return StorageRef(storage);
}

// Nobody writes into a piece that has an owner.
std::unique_ptr<Storage> borrowed_piece(std::shared_ptr<const void> owner,
                                        std::span<const uint8_t> bytes) {
    auto storage = std::make_unique<Storage>();
    storage->data = const_cast<uint8_t*>(bytes.data());
    storage->capacity = bytes.size();
    storage->owner = std::move(owner);
    return storage;
}

void free_unpooled(Storage* storage) {
    if (storage->owner) {
        delete storage;
    } else if (storage->capacity >= huge_from) {
        ::munmap(storage->data, storage->capacity);
        delete storage;
    } else {
        storage->~Storage();
        std::free(storage);
    }
}

}  // namespace

StorageRef::~StorageRef() {
    if (!storage_ || storage_->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    if (storage_->pool) {
        storage_->pool->put_back(storage_);
    } else if (storage_->recycler) {
        storage_->recycler->put_back(storage_);
    } else {
        free_unpooled(storage_);
    }
}

StorageRef unpooled(size_t size) {
    size = std::max<size_t>(size, 1);
    if (size >= huge_from) {
        auto storage = std::make_unique<Storage>();
        storage->data = system_memory(size);
        return unpooled_piece(storage.release(), size);
    }
    // The heap uses memory again, which mapping would not. The bookkeeping is in front.
    const size_t alignment = size < mapped_from ? cache_line : page;
    void* memory = nullptr;
    if (::posix_memalign(&memory, alignment, alignment + size) != 0) throw std::bad_alloc();
    auto* storage = new (memory) Storage;
    storage->data = static_cast<uint8_t*>(memory) + alignment;
    return unpooled_piece(storage, size);
}

StorageRef borrowed(std::shared_ptr<const void> owner, std::span<const uint8_t> bytes) {
    const size_t size = bytes.size();
    return unpooled_piece(borrowed_piece(std::move(owner), bytes).release(), size);
}

StorageRef Pool::borrow(std::shared_ptr<const void> owner, std::span<const uint8_t> bytes) {
    auto storage = borrowed_piece(std::move(owner), bytes);
    storage->pool = this;
    owners_.fetch_add(1, std::memory_order_relaxed);
    add_held(bytes.size());
    return StorageRef(storage.release());
}

void StorageRef::hand_out() const {
    if (storage_->held.exchange(false, std::memory_order_relaxed))
        storage_->pool->held_.fetch_sub(storage_->capacity, std::memory_order_seq_cst);
}

Pool::Pool(const Options& options)
    : budget_(options.memory),
      alloc_(options.alloc),
      release_(options.release),
      alloc_ctx_(options.alloc_ctx),
      fork_generation_(fork_generation()) {}

Pool* Pool::make(const Options& options) {
    return new Pool(options);
}

void Pool::drop() noexcept {
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

void Pool::add_held(uint64_t bytes) {
    const uint64_t now = held_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    uint64_t before = peak_.load(std::memory_order_relaxed);
    while (before < now && !peak_.compare_exchange_weak(before, now, std::memory_order_relaxed)) {
    }
}

StorageRef Pool::acquire(size_t size, const Cancel& cancel) {
    const size_t number = size_class(size);
    std::unique_ptr<Storage> fresh;
    {
        std::unique_lock lock(mutex_);
        if (Storage* const storage = number == no_class ? take_large(size) : take(number)) {
            storage->references.store(1, std::memory_order_relaxed);
            storage->held.store(true, std::memory_order_relaxed);
            lock.unlock();
            add_held(storage->capacity);
            return StorageRef(storage);
        }
        // What waits for use makes room for what is used now. Large pieces of other sizes than what
        // is wanted would hardly be used again.
        const auto full = [&] { return held() + recycled_bytes_ + size > budget_; };
        while (!large_.empty() && (number == no_class || full())) let_go(large_);
        for (size_t i = classes; i-- > 0 && recycled_bytes_ > 0 && full();)
            while (!recycled_[i].empty() && full()) let_go(recycled_[i]);
        fresh = std::make_unique<Storage>();
        if (alloc_) {
            fresh->data = request(size, lock, cancel);
        }
    }
    if (!alloc_) fresh->data = system_memory(size);
    fresh->pool = this;
    fresh->capacity = size;
    owners_.fetch_add(1, std::memory_order_relaxed);
    add_held(size);
    return StorageRef(fresh.release());
}

// A piece that waits for use; NULL: there is none. With the lock held.
Storage* Pool::take(size_t number) noexcept {
    std::vector<Storage*>& list = recycled_[number];
    if (list.empty()) return nullptr;
    Storage* const storage = list.back();  // the last one used: the caches still have it
    list.pop_back();
    recycled_bytes_ -= storage->capacity;
    return storage;
}

// The same of exactly this size.
Storage* Pool::take_large(size_t capacity) noexcept {
    const auto found = std::find_if(large_.rbegin(), large_.rend(), [=](const Storage* storage) {
        return storage->capacity == capacity;
    });
    if (found == large_.rend()) return nullptr;
    Storage* const storage = *found;
    large_.erase(std::next(found).base());
    recycled_bytes_ -= capacity;
    return storage;
}

// Frees the last one of a list, which is not empty. With the lock held.
void Pool::let_go(std::vector<Storage*>& list) noexcept {
    Storage* const idle = list.back();
    list.pop_back();
    recycled_bytes_ -= idle->capacity;
    if (release_)
        retire(idle);
    else
        destroy(idle);
}

uint8_t* Pool::request(size_t capacity, std::unique_lock<std::mutex>& lock, const Cancel& cancel) {
    if (may_call_back()) {  // the consumer itself, which nobody else could serve
        free_retired();
        auto* data = static_cast<uint8_t*>(alloc_(alloc_ctx_, capacity, page));
        if (!data) throw std::bad_alloc();
        return data;
    }
    Request wish{.capacity = capacity};
    requests_.push_back(&wish);
    wanted_.store(true, std::memory_order_release);
    lock.unlock();
    if (on_wait) on_wait();
    lock.lock();
    served_.wait(lock, [&] { return wish.done || cancel.requested(); });
    if (!wish.done) {
        std::erase(requests_, &wish);
        cancel.check();
    }
    if (!wish.data) throw std::bad_alloc();
    return wish.data;
}

void Pool::serve() {
    if (!wants_service()) return;
    std::unique_lock lock(mutex_);
    free_retired();
    while (!requests_.empty()) {
        // The callback runs under the lock: it must not call back into the library, and the other
        // threads have nothing to do here without memory.
        Request* wish = requests_.front();
        requests_.pop_front();
        wish->data = static_cast<uint8_t*>(alloc_(alloc_ctx_, wish->capacity, page));
        wish->done = true;
    }
    wanted_.store(false, std::memory_order_release);
    served_.notify_all();
}

void Pool::interrupt() {
    const std::lock_guard lock(mutex_);
    served_.notify_all();
}

void Pool::free_memory(uint8_t* data, size_t capacity) noexcept {
    if (release_)
        release_(alloc_ctx_, data, capacity);
    else
        free_system_memory(data, capacity);
}

// Keeps a piece until a thread comes by that may call the custom allocator. With the lock held.
void Pool::retire(Storage* storage) noexcept {
    storage->next = retired_;
    retired_ = storage;
    wanted_.store(true, std::memory_order_release);
}

void Pool::free_retired() noexcept {
    while (retired_) destroy(std::exchange(retired_, retired_->next));
}

void Pool::destroy(Storage* storage) noexcept {
    free_memory(storage->data, storage->capacity);
    delete storage;
    owners_.fetch_sub(1, std::memory_order_relaxed);  // the caller is an owner too
}

void Pool::put_back(Storage* storage) noexcept {
    if (fork_generation_ != fork_generation()) {
        // In a forked child another thread of the parent may have held the lock at the fork. The
        // child gives its copy of the pages back and leaves the pool alone; memory of a custom
        // allocator belongs to the parent.
        if (!release_ && !storage->owner) free_memory(storage->data, storage->capacity);
        delete storage;
        return;
    }
    if (storage->held.load(std::memory_order_relaxed))
        held_.fetch_sub(storage->capacity, std::memory_order_relaxed);
    if (storage->owner) {
        delete storage;
        return drop();
    }
    size_t size = storage->capacity;
    const size_t number = size_class(size);
    {
        const std::lock_guard lock(mutex_);
        // Enough for full speed, not all that a burst once needed.
        const uint64_t keep = std::min<uint64_t>(
            budget_, std::max({uint64_t{32} << 20, budget_ / 2, 3 * uint64_t{storage->capacity}}));
        const bool pooled = alloc_ || storage->capacity >= mapped_from;
        if (!closed_ && pooled && recycled_bytes_ + storage->capacity <= keep &&
            held() + recycled_bytes_ + storage->capacity <= budget_) {
            try {
                (number == no_class ? large_ : recycled_[number]).push_back(storage);
                recycled_bytes_ += storage->capacity;
                return;
            } catch (const std::bad_alloc&) {  // then it is freed below
            }
        }
        if (release_ && !closed_ && !may_call_back()) return retire(storage);
    }
    free_memory(storage->data, storage->capacity);
    delete storage;
    drop();
}

void Pool::close() noexcept {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    free_retired();
    for (Storage* storage : large_) destroy(storage);
    large_.clear();
    for (auto& list : recycled_) {
        for (Storage* storage : list) destroy(storage);
        list.clear();
    }
    recycled_bytes_ = 0;
}

}  // namespace shf
