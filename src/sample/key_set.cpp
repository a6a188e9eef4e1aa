#include "sample/key_set.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>

namespace shf {

uint64_t KeySet::prepare(std::string_view key, bool later) {
    if (ordered_ && !later) leave_order();
    const uint64_t hash = std::max<uint64_t>(XXH3_64bits(key.data(), key.size()), 1);
    if (!slots_.empty()) __builtin_prefetch(&slots_[hash & (slots_.size() - 1)], 1);
    return hash;
}

bool KeySet::insert(uint64_t hash) {
    if (count_ == most) return true;
    if (ordered_) {
        written_.push_back(hash);
        ++count_;
        return true;
    }
    if (slots_.size() < 2 * (count_ + 1)) grow();
    const size_t mask = slots_.size() - 1;
    size_t slot = static_cast<size_t>(hash) & mask;
    while (slots_[slot] != 0) {
        if (slots_[slot] == hash) return false;
        slot = (slot + 1) & mask;
    }
    slots_[slot] = hash;
    ++count_;
    return true;
}

// Makes the table of what was written down.
void KeySet::leave_order() {
    ordered_ = false;
    slots_.resize(std::bit_ceil(std::max<size_t>(2 * (count_ + 1), 1024)));
    for (const uint64_t hash : written_) put(hash);
    written_ = {};
}

void KeySet::grow() {
    std::vector<uint64_t> old(2 * slots_.size());
    old.swap(slots_);
    for (const uint64_t hash : old)
        if (hash != 0) put(hash);
}

// A hash that is not there, where there is room.
void KeySet::put(uint64_t hash) {
    const size_t mask = slots_.size() - 1;
    size_t slot = static_cast<size_t>(hash) & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = hash;
}

}  // namespace shf
