// Keeps memory that was used for a next use, without locks: for readers that any thread and any
// forked child may call.
#pragma once

#include "core/memory.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace shf {

class Recycler {
  public:
    // Keeps at most `keep` bytes, after expect() at most `most`. One owner; release with drop().
    // Lives until its last piece is gone.
    static Recycler* make(uint64_t keep, uint64_t most = 0);
    void drop() noexcept;
    struct Drop {
        void operator()(Recycler* recycler) const noexcept { recycler->drop(); }
    };

    // Pieces of `bytes` in all will be taken at once: keeps that much from now on, and as much
    // again for users who let the last ones go when they have the next. Any thread.
    void expect(uint64_t bytes) noexcept;

    // A piece of at least `size` bytes, undefined, page-aligned when it is large. Any thread.
    // Throws std::bad_alloc.
    StorageRef acquire(size_t size);

  private:
    friend class StorageRef;
    // From 1 KiB to 32 MiB, four sizes for each power of two. The heap is good at smaller ones.
    static constexpr size_t least_bits = 10, most_bits = 25, steps = 4;
    static constexpr size_t classes = (most_bits - least_bits) * steps;
    // On each shelf: four batches of 256, of which two may be in use while two lie idle.
    static constexpr size_t places = 1024;

    // A stack whose top is only nearly right: a thread that finds its place taken, or empty, does
    // without. Nothing is ever lost, and no thread waits for another.
    struct Shelf {
        std::atomic<int64_t> top{0};
        std::atomic<std::atomic<Storage*>*> pieces{nullptr};  // `places`, from the first use on
    };

    Recycler(uint64_t keep, uint64_t most) : keep_(keep), most_(most) {}
    ~Recycler();
    void put_back(Storage* storage) noexcept;
    static size_t shelf_for(size_t& size);
    static std::atomic<Storage*>* pieces_of(Shelf& shelf) noexcept;

    std::atomic<uint64_t> keep_;
    const uint64_t most_;
    std::atomic<uint64_t> kept_{0};
    std::atomic<uint64_t> owners_{1};
    std::array<Shelf, classes> shelves_;
};

}  // namespace shf
