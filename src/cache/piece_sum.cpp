#include "cache/piece_sum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "cache/piece_sum_parts.h"

#ifdef __x86_64__
extern "C" {
uint64_t shf_piece_sum_avx2(const iovec* parts, size_t count);
uint64_t shf_piece_sum_avx512f(const iovec* parts, size_t count);
}
#endif

namespace shf {

std::vector<PieceSum> piece_sums() {
    std::vector<PieceSum> sums = {sum_of_parts};
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) sums.push_back(shf_piece_sum_avx2);
    if (__builtin_cpu_supports("avx512f")) sums.push_back(shf_piece_sum_avx512f);
#endif
    return sums;
}

uint64_t piece_sum(std::span<const iovec> parts) {
    static const PieceSum sum = piece_sums().back();
    return sum(parts.data(), parts.size());
}

uint64_t piece_sum(std::span<const uint8_t> bytes) {
    const iovec whole = {const_cast<uint8_t*>(bytes.data()), bytes.size()};
    return piece_sum({&whole, 1});
}

}  // namespace shf
