/* The sum of a piece in several buffers, in C and C++. Include <xxhash.h> before it. */
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

static inline uint64_t sum_of_parts(const struct iovec* parts, size_t count) {
    XXH3_state_t state;
    if (count == 1) return XXH3_64bits(parts[0].iov_base, parts[0].iov_len);
    XXH3_64bits_reset(&state);
    for (size_t i = 0; i < count; ++i)
        XXH3_64bits_update(&state, parts[i].iov_base, parts[i].iov_len);
    return XXH3_64bits_digest(&state);
}
