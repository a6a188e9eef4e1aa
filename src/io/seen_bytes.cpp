#include "io/seen_bytes.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <vector>

namespace shf {

namespace {

constexpr size_t longest_piece = 64 * 1024;
constexpr int64_t tick = 100'000'000;  // the clocks of time stamps are at least this fine

uint64_t hash_of(std::span<const uint8_t> bytes) {
    return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace

// At the start of a file its first bytes, elsewhere the last ones.
void SeenBytes::Piece::take(uint64_t at, std::span<const uint8_t> bytes) {
    uint8_t none = 0;
    if (bytes.empty() || !state.compare_exchange_strong(none, 1, std::memory_order_relaxed)) return;
    const size_t kept = std::min(bytes.size(), longest_piece);
    offset = at == 0 ? 0 : at + (bytes.size() - kept);
    size = kept;
    hash = hash_of(at == 0 ? bytes.first(kept) : bytes.last(kept));
    state.store(2, std::memory_order_release);
}

bool SeenBytes::Piece::holds(const Read& read) const {
    if (state.load(std::memory_order_acquire) != 2) return true;
    std::vector<uint8_t> bytes(size);
    return read(offset, bytes) && hash_of(bytes) == hash;
}

bool SeenBytes::same(int64_t changed, int64_t now, const Read& read) {
    if (!head_.holds(read) || !tail_.holds(read)) return false;
    touched_.store(true, std::memory_order_relaxed);
    if (now < changed || now - changed > tick) changed_.store(changed, std::memory_order_relaxed);
    return true;
}

}  // namespace shf
