/* piece_sum for processors with wide registers: compiled with -mavx2 and with -mavx512f, under the
 * name that SHF_PIECE_SUM says. In C, since an inline function of C++ that is compiled here might
 * be the one that the linker keeps for all, which older processors cannot run. */
#include <stddef.h>
#include <stdint.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t SHF_PIECE_SUM(const uint8_t* bytes, size_t size);

uint64_t SHF_PIECE_SUM(const uint8_t* bytes, size_t size) {
    return XXH3_64bits(bytes, size);
}
