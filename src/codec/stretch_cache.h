// The last stretches that were decompressed, for the reads after them.
#pragma once

#include "core/memory.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace shf {

class StretchReader;

// Any number of threads, and forked children too: no locks. A thread that finds a place taken does
// without, so that what is in the cache may be decompressed once more.
class StretchCache {
  public:
    // Holds at most `most` bytes, but at least one stretch.
    explicit StretchCache(uint64_t most);
    ~StretchCache();
    StretchCache(const StretchCache&) = delete;
    StretchCache& operator=(const StretchCache&) = delete;

    // What put() had for these numbers; none when it is gone.
    StorageRef find(uint64_t shard, uint64_t stretch);
    [[nodiscard]] bool has(uint64_t shard, uint64_t stretch) const;
    // Keeps it, in the place of others where there is no room.
    void put(uint64_t shard, uint64_t stretch, const StorageRef& bytes);

    // A reader of that shard which stands before `stretch` or not far; NULL when there is none.
    std::unique_ptr<StretchReader> take_reader(uint64_t shard, uint64_t first, uint64_t last);
    // Keeps a reader that stands where no point is, for the stretch that follows.
    void put_reader(uint64_t shard, std::unique_ptr<StretchReader> reader);

  private:
    struct Entry {
        uint64_t shard, stretch;
        StorageRef bytes;
    };
    struct Reader {
        uint64_t shard;
        std::unique_ptr<StretchReader> reader;
    };
    struct Place {
        std::atomic<uint64_t> tag{0};  // of what is in it, or was taken out for a moment
        std::atomic<Entry*> entry{nullptr};
    };
    // Numbers are below 2^32 as a rule; an entry says which ones it has.
    static uint64_t tag_of(uint64_t shard, uint64_t stretch) {
        return ((shard + 1) << 32) ^ (stretch + 1);
    }
    void drop(Entry* entry);

    const uint64_t most_;
    std::atomic<uint64_t> held_{0};
    std::atomic<size_t> next_{0};  // the place whose entry goes next
    std::array<Place, 64> places_;
    std::array<std::atomic<Reader*>, 4> readers_{};
    std::atomic<size_t> next_reader_{0};
};

}  // namespace shf
