#include "cache/piece_sum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#ifdef __x86_64__
extern "C" {
uint64_t shf_piece_sum_avx2(const uint8_t* bytes, size_t size);
uint64_t shf_piece_sum_avx512f(const uint8_t* bytes, size_t size);
}
#endif

namespace shf {

std::vector<PieceSum> piece_sums() {
    std::vector<PieceSum> sums = {
        [](const uint8_t* bytes, size_t size) { return uint64_t{XXH3_64bits(bytes, size)}; }};
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) sums.push_back(shf_piece_sum_avx2);
    if (__builtin_cpu_supports("avx512f")) sums.push_back(shf_piece_sum_avx512f);
#endif
    return sums;
}

uint64_t piece_sum(std::span<const uint8_t> bytes) {
    static const PieceSum sum = piece_sums().back();
    return sum(bytes.data(), bytes.size());
}

}  // namespace shf
