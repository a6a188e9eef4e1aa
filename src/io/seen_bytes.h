// What is remembered of the bytes of a file, to tell whether it is the same one after something was
// done to it that neither its size nor its modification time shows.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>

namespace shf {

// A hash of the first and of the last bytes that were read, as an index has them. Any number of
// threads, without locks, so that forked children may use it.
class SeenBytes {
  public:
    // `changed` is when the file's status changed last, in nanoseconds since 1970 (st_ctim).
    explicit SeenBytes(int64_t changed) : changed_(changed) {}

    // Bytes that were read at `offset` of a file of `size` bytes.
    void note(uint64_t offset, std::span<const uint8_t> bytes, uint64_t size) {
        if (offset == 0 && !head_.taken()) head_.take(0, bytes);
        if (offset + bytes.size() == size && !tail_.taken()) tail_.take(offset, bytes);
    }

    [[nodiscard]] int64_t changed() const { return changed_.load(std::memory_order_relaxed); }
    // True once its status changed while its bytes were, as far as was seen, the same.
    [[nodiscard]] bool touched() const { return touched_.load(std::memory_order_relaxed); }

    // Fills the bytes at an offset; false when they are not there.
    using Read = std::function<bool(uint64_t offset, std::span<uint8_t> out)>;
    // The status changed at `changed`: reads again what is remembered. False when it is another
    // file. `now` in the same unit: a change is looked at once more while a writer may still be at
    // it within the same tick of the clock.
    bool same(int64_t changed, int64_t now, const Read& read);

  private:
    struct Piece {
        std::atomic<uint8_t> state{0};  // 1: a thread is at it, 2: it is there
        uint64_t offset = 0, hash = 0;
        size_t size = 0;

        [[nodiscard]] bool taken() const { return state.load(std::memory_order_relaxed) != 0; }
        void take(uint64_t at, std::span<const uint8_t> bytes);
        [[nodiscard]] bool holds(const Read& read) const;
    };

    std::atomic<int64_t> changed_;
    std::atomic<bool> touched_{false};
    Piece head_, tail_;
};

}  // namespace shf
