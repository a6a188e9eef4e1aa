/* piece_sum for processors with wide registers: compiled with -mavx2 and with -mavx512f, under the
 * name that SHF_PIECE_SUM says. In C, since an inline function of C++ that is compiled here might
 * be the one that the linker keeps for all, which older processors cannot run. */
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t SHF_PIECE_SUM(const struct iovec* parts, size_t count);

#include "piece_sum_parts.h"

uint64_t SHF_PIECE_SUM(const struct iovec* parts, size_t count) {
    return sum_of_parts(parts, count);
}
