#include "core/recycler.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <new>

namespace shf {

Recycler* Recycler::make(uint64_t keep, uint64_t most) {
    return new Recycler(keep, most);
}

void Recycler::expect(uint64_t bytes) noexcept {
    const uint64_t wanted = bytes > most_ / 2 ? most_ : 2 * bytes;
    uint64_t now = keep_.load(std::memory_order_relaxed);
    while (now < wanted && !keep_.compare_exchange_weak(now, wanted, std::memory_order_relaxed)) {
    }
}

void Recycler::drop() noexcept {
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

Recycler::~Recycler() {
    for (Shelf& shelf : shelves_) {
        const std::unique_ptr<std::atomic<Storage*>[]> pieces(
            shelf.pieces.load(std::memory_order_relaxed));
        for (size_t i = 0; pieces && i < places; ++i)
            if (Storage* storage = pieces[i].load(std::memory_order_relaxed)) {
                storage->recycler = nullptr;
                storage->references.store(1, std::memory_order_relaxed);
                const StorageRef freed(storage);
            }
    }
}

// The places of a shelf, made for the first piece that is put there; NULL when there is no memory.
std::atomic<Storage*>* Recycler::pieces_of(Shelf& shelf) noexcept {
    if (auto* pieces = shelf.pieces.load(std::memory_order_acquire)) return pieces;
    std::unique_ptr<std::atomic<Storage*>[]> fresh(new (std::nothrow)
                                                       std::atomic<Storage*>[places]());
    std::atomic<Storage*>* other = nullptr;
    if (shelf.pieces.compare_exchange_strong(other, fresh.get(), std::memory_order_acq_rel,
                                             std::memory_order_acquire))
        return fresh.release();
    return other;  // another thread was faster
}

// The shelf for pieces of `size`, which becomes theirs; `classes` when none is.
size_t Recycler::shelf_for(size_t& size) {
    constexpr size_t least = size_t{1} << least_bits, most = size_t{1} << most_bits;
    if (size <= least || size > most) return classes;
    const auto bits = static_cast<size_t>(std::bit_width(size - 1)) - 1;  // 2^bits < size
    const size_t step = (size_t{1} << bits) / steps;
    size = (size + step - 1) / step * step;
    return (bits - least_bits) * steps + (size - (size_t{1} << bits)) / step - 1;
}

StorageRef Recycler::acquire(size_t size) {
    const size_t number = shelf_for(size);
    if (number == classes) return unpooled(size);
    Shelf& shelf = shelves_[number];
    if (shelf.top.load(std::memory_order_relaxed) > 0) {
        const int64_t at = shelf.top.fetch_sub(1, std::memory_order_relaxed) - 1;
        Storage* storage = nullptr;
        if (at >= 0 && at < static_cast<int64_t>(places))
            if (auto* pieces = shelf.pieces.load(std::memory_order_acquire))
                storage = pieces[at].exchange(nullptr, std::memory_order_acquire);
        if (at < 0) shelf.top.fetch_add(1, std::memory_order_relaxed);
        if (storage) {
            kept_.fetch_sub(storage->capacity, std::memory_order_relaxed);
            storage->references.store(1, std::memory_order_relaxed);
            owners_.fetch_add(1, std::memory_order_relaxed);
            return StorageRef(storage);
        }
    }
    StorageRef fresh = unpooled(size);
    fresh->recycler = this;
    owners_.fetch_add(1, std::memory_order_relaxed);
    return fresh;
}

void Recycler::put_back(Storage* storage) noexcept {
    size_t size = storage->capacity;
    Shelf& shelf = shelves_[shelf_for(size)];
    auto* pieces = pieces_of(shelf);
    bool taken = false;
    if (kept_.fetch_add(size, std::memory_order_relaxed) + size <=
            keep_.load(std::memory_order_relaxed) &&
        pieces) {
        const int64_t at = shelf.top.fetch_add(1, std::memory_order_relaxed);
        if (at >= 0 && at < static_cast<int64_t>(places)) {
            // When there is a piece already, whose place was asked for before it was there, the top
            // is right again: that piece would never be seen otherwise.
            Storage* none = nullptr;
            taken = pieces[at].compare_exchange_strong(none, storage, std::memory_order_release,
                                                       std::memory_order_relaxed);
        } else {
            shelf.top.fetch_sub(1, std::memory_order_relaxed);
        }
    }
    if (!taken) {
        kept_.fetch_sub(size, std::memory_order_relaxed);
        storage->recycler = nullptr;
        storage->references.store(1, std::memory_order_relaxed);
        const StorageRef freed(storage);
    }
    drop();
}

}  // namespace shf
