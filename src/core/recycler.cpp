#include "core/recycler.h"

#include <algorithm>
#include <bit>

namespace shf {

Recycler* Recycler::make(uint64_t keep) {
    return new Recycler(keep);
}

void Recycler::drop() noexcept {
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

Recycler::~Recycler() {
    for (Shelf& shelf : shelves_)
        for (auto& place : shelf.pieces)
            if (Storage* storage = place.load(std::memory_order_relaxed)) {
                storage->recycler = nullptr;
                storage->references.store(1, std::memory_order_relaxed);
                const StorageRef freed(storage);
            }
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
            storage =
                shelf.pieces[static_cast<size_t>(at)].exchange(nullptr, std::memory_order_acquire);
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
    bool taken = false;
    if (kept_.fetch_add(size, std::memory_order_relaxed) + size <= keep_) {
        const int64_t at = shelf.top.fetch_add(1, std::memory_order_relaxed);
        if (at >= 0 && at < static_cast<int64_t>(places)) {
            // When there is a piece already, whose place was asked for before it was there, the top
            // is right again: that piece would never be seen otherwise.
            Storage* none = nullptr;
            taken = shelf.pieces[static_cast<size_t>(at)].compare_exchange_strong(
                none, storage, std::memory_order_release, std::memory_order_relaxed);
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
