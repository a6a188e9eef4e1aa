// Who fetches which block of a version: locks over ranges of one file, byte n for block n. The
// kernel gives them up when their process dies. What a cache serves never depends on them; they
// keep two from fetching the same bytes.
#pragma once

#include "io/descriptor.h"

#include <cstdint>
#include <string>

namespace shf {

// The locks of one reader. They are of an open file (F_OFD_SETLK), so that two threads exclude each
// other, and closing another descriptor of the file changes nothing (R8). A forked child would keep
// them when its parent dies; so they are closed in it.
class BlockLocks {
  public:
    BlockLocks() = default;
    ~BlockLocks() { close(); }
    BlockLocks(const BlockLocks&) = delete;
    BlockLocks& operator=(const BlockLocks&) = delete;

    // Opens the file `path` below the folder `root`, and makes it. Where that fails, or the file
    // system has no locks, everything is granted.
    void open(int root, const std::string& path);
    [[nodiscard]] bool is_open() const { return slot_ >= 0; }
    // Locks block `first` and those that follow, up to `count`, as far as nobody else has them.
    // Returns how many: 0 when `first` is another reader's.
    uint64_t try_lock(uint64_t first, uint64_t count);
    void unlock(uint64_t first, uint64_t count);
    // The last wait for a lock was in vain: the next one is not worth it.
    void set_vain() { vain_ = true; }
    [[nodiscard]] bool vain() const { return vain_; }
    // The holder makes no progress. After three times the next wait is not worth it either: he may
    // be a reader of our own thread, which goes on when we have read.
    void set_stalled() { vain_ = vain_ || ++stalls_ >= 3; }
    // Says that the holder of locks here still makes progress.
    void beat();
    // Changes whenever somebody does.
    [[nodiscard]] int64_t last_beat() const;

  private:
    [[nodiscard]] int fd() const;
    void close() noexcept;

    bool vain_ = false;
    unsigned stalls_ = 0;
    int slot_ = -1;
    uint64_t generation_ = 0;
    Clock::time_point next_beat_{};
};

}  // namespace shf
