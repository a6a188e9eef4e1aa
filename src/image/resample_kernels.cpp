#include "image/resample_kernels.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace shf {

namespace {

constexpr int32_t half = 1 << (weight_bits - 1);

// Filters with negative weights go past both ends.
uint8_t sample_of(int32_t sum) {
    return static_cast<uint8_t>(std::clamp(sum >> weight_bits, 0, 255));
}

template <size_t Channels>
void rows_anywhere(const uint8_t* in0, const uint8_t* in1, const FilterTable& table, uint8_t* out0,
                   uint8_t* out1) {
    const int32_t* weights = table.weights.data();
    for (const FilterTable::Taps& taps : table.taps) {
        int32_t sum0[Channels], sum1[Channels];
        std::fill_n(sum0, Channels, half);
        std::fill_n(sum1, Channels, half);
        const uint8_t* from0 = in0 + taps.first * Channels;
        const uint8_t* from1 = in1 + taps.first * Channels;
        for (uint32_t i = 0; i < taps.count; ++i)
            for (size_t c = 0; c < Channels; ++c) {
                sum0[c] += *from0++ * weights[i];
                sum1[c] += *from1++ * weights[i];
            }
        for (size_t c = 0; c < Channels; ++c) {
            *out0++ = sample_of(sum0[c]);
            *out1++ = sample_of(sum1[c]);
        }
        weights += table.most;
    }
}

void columns_anywhere(const uint8_t* const* in, uint32_t count, const int32_t* weights,
                      uint8_t* out, size_t size) {
    constexpr size_t block = 64;
    for (size_t x = 0; x < size; x += block) {
        const size_t width = std::min(block, size - x);
        int32_t sum[block];
        std::fill_n(sum, block, half);
        for (uint32_t i = 0; i < count; ++i)
            for (size_t c = 0; c < width; ++c) sum[c] += in[i][x + c] * weights[i];
        for (size_t c = 0; c < width; ++c) out[x + c] = sample_of(sum[c]);
    }
}

#if defined(__x86_64__)

// A weight has 23 bits and a 16-bit multiplication is three times as fast as one of 32 bit, so
// the two parts of the weights are multiplied apart, each for two samples at once.
[[gnu::target("avx2"), gnu::always_inline]] inline __m256i whole_sum(__m256i high, __m256i low) {
    return _mm256_srai_epi32(_mm256_add_epi32(_mm256_slli_epi32(high, low_bits), low), weight_bits);
}

template <size_t Channels>
[[gnu::target("avx2")]] void rows_avx2(const uint8_t* in0, const uint8_t* in1,
                                       const FilterTable& table, uint8_t* out0, uint8_t* out1) {
    // The same channel of two pixels side by side, as 16 bits; a row in each half.
    constexpr char c = Channels, no = -1;
    const __m256i pair = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, no, c, no, 1, no, c + 1, no, 2, no, c + 2, no,  //
                      c == 4 ? 3 : no, no, c == 4 ? c + 3 : no, no));
    const int32_t* weights = table.pairs.data();
    for (const FilterTable::Taps& taps : table.taps) {
        const uint8_t* from0 = in0 + taps.first * Channels;
        const uint8_t* from1 = in1 + taps.first * Channels;
        __m256i high = _mm256_setzero_si256(), low = _mm256_set1_epi32(half);
        for (uint32_t i = 0; i < taps.count; i += 2) {
            const __m128i bytes0 = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from0));
            const __m128i bytes1 = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from1));
            const __m256i both = _mm256_shuffle_epi8(_mm256_set_m128i(bytes1, bytes0), pair);
            high = _mm256_add_epi32(high, _mm256_madd_epi16(both, _mm256_set1_epi32(weights[i])));
            low = _mm256_add_epi32(low, _mm256_madd_epi16(both, _mm256_set1_epi32(weights[i + 1])));
            from0 += 2 * Channels;
            from1 += 2 * Channels;
        }
        const __m256i words = _mm256_packs_epi32(whole_sum(high, low), _mm256_setzero_si256());
        const __m256i bytes = _mm256_packus_epi16(words, words);
        const int32_t pixel0 = _mm_cvtsi128_si32(_mm256_castsi256_si128(bytes));
        const int32_t pixel1 = _mm_cvtsi128_si32(_mm256_extracti128_si256(bytes, 1));
        std::memcpy(out0, &pixel0, 4);
        std::memcpy(out1, &pixel1, 4);
        out0 += Channels;
        out1 += Channels;
        weights += table.most;
    }
}

[[gnu::target("avx2")]] void columns_avx2(const uint8_t* const* in, uint32_t count,
                                          const int32_t* weights, uint8_t* out, size_t size) {
    constexpr size_t block = 32;
    const __m256i zero = _mm256_setzero_si256();
    size_t x = 0;
    for (; x + block <= size; x += block) {
        __m256i high[4], low[4];
        for (size_t part = 0; part < 4; ++part) {
            high[part] = zero;
            low[part] = _mm256_set1_epi32(half);
        }
        for (uint32_t i = 0; i < count; i += 2) {
            const uint8_t* const next = in[i + 1 < count ? i + 1 : i];
            const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in[i] + x));
            const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(next + x));
            const __m256i first = _mm256_unpacklo_epi8(a, b), last = _mm256_unpackhi_epi8(a, b);
            const __m256i pairs[4] = {
                _mm256_unpacklo_epi8(first, zero), _mm256_unpackhi_epi8(first, zero),
                _mm256_unpacklo_epi8(last, zero), _mm256_unpackhi_epi8(last, zero)};
            const __m256i heavy = _mm256_set1_epi32(pair_high(weights[i], weights[i + 1]));
            const __m256i light = _mm256_set1_epi32(pair_low(weights[i], weights[i + 1]));
            for (size_t part = 0; part < 4; ++part) {
                high[part] = _mm256_add_epi32(high[part], _mm256_madd_epi16(pairs[part], heavy));
                low[part] = _mm256_add_epi32(low[part], _mm256_madd_epi16(pairs[part], light));
            }
        }
        const __m256i first =
            _mm256_packs_epi32(whole_sum(high[0], low[0]), whole_sum(high[1], low[1]));
        const __m256i last =
            _mm256_packs_epi32(whole_sum(high[2], low[2]), whole_sum(high[3], low[3]));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + x), _mm256_packus_epi16(first, last));
    }
    for (; x < size; ++x) {
        int32_t sum = half;
        for (uint32_t i = 0; i < count; ++i) sum += in[i][x] * weights[i];
        out[x] = sample_of(sum);
    }
}

#endif

}  // namespace

const ResampleKernels& portable_resample_kernels() {
    static constexpr ResampleKernels kernels{
        {nullptr, rows_anywhere<1>, nullptr, rows_anywhere<3>, rows_anywhere<4>}, columns_anywhere};
    return kernels;
}

const ResampleKernels& resample_kernels() {
#if defined(__x86_64__)
    static constexpr ResampleKernels avx2{
        {nullptr, rows_anywhere<1>, nullptr, rows_avx2<3>, rows_avx2<4>}, columns_avx2};
    static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
    if (has_avx2) return avx2;
#endif
    return portable_resample_kernels();
}

}  // namespace shf
