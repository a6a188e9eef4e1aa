#include "cli/key_census.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

namespace cli {

namespace {

// The place of a hash, or the free one where it belongs. The table is never full.
uint64_t& place_of(std::vector<uint64_t>& table, uint64_t hash) {
    size_t at = static_cast<size_t>(hash) & (table.size() - 1);
    while (table[at] != 0 && table[at] != hash) at = (at + 1) & (table.size() - 1);
    return table[at];
}

}  // namespace

bool KeyCensus::add(std::string_view key) {
    if (held_ * 2 >= table_.size() && held_ < most) grow();
    const uint64_t hash = std::max<uint64_t>(XXH3_64bits(key.data(), key.size()), 1);
    uint64_t& place = place_of(table_, hash);
    if (place == hash) {
        ++repeated_;
        return true;
    }
    if (held_ < most) {
        place = hash;
        ++held_;
    }
    return false;
}

void KeyCensus::grow() {
    std::vector<uint64_t> larger(std::max<size_t>(1024, table_.size() * 2));
    for (const uint64_t hash : table_)
        if (hash != 0) place_of(larger, hash) = hash;
    table_ = std::move(larger);
}

}  // namespace cli
