// The keys a shard has had so far, to find one that comes again: a shard whose members are sorted
// by suffix instead of by key would otherwise fall apart into partial samples, silently.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace shf {

class KeySet {
  public:
    // Keys are compared by a 64-bit hash (XXH3); two different keys of 100,000 are taken for one
    // with a probability of about 3e-10. The memory that insert() will look at is fetched
    // meanwhile. An insert() follows before the next key. `later`: the key comes after the one
    // before it, in the order of their bytes.
    uint64_t prepare(std::string_view key, bool later);
    // True when the key that was prepared is new. After `most` keys the set is full and every key
    // counts as new: 16 MiB are enough for any shard that is meant to be read in one go.
    bool insert(uint64_t prepared);

  private:
    static constexpr size_t most = 1 << 20;
    void leave_order();
    void grow();
    void put(uint64_t hash);

    // A key that comes after all others is new, regardless of what they are. So as long as they are
    // sorted, as in most shards, they are only written down: a table would be looked at all over.
    bool ordered_ = true;
    std::vector<uint64_t> written_;  // hashes of the keys, while ordered_
    std::vector<uint64_t> slots_;    // then: open addressing; 0 is free
    size_t count_ = 0;
};

}  // namespace shf
