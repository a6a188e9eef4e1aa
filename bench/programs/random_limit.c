/* random_limit FILE RANGES ROUNDS: what the system allows. RANGES is a file of 64-bit numbers, three
 * for each read in its order: offset, bytes there, and bytes that deflate makes of them (0: stored).
 * pread(2) into a buffer that is used again, and libdeflate; no directory, no header, no CRC. */
#define _POSIX_C_SOURCE 200809L

#include "random_order.h"

#include <fcntl.h>
#include <libdeflate.h>
#include <unistd.h>

struct limit {
    int file;
    struct libdeflate_decompressor* inflate;
    uint8_t *in, *out;
};

static void pass_read(void* reader, const uint64_t* ranges, size_t count, struct measure* m) {
    struct limit* limit = reader;
    for (size_t i = 0; i + 3 <= count; i += 3) {
        const size_t size = (size_t)ranges[i + 1], made = (size_t)ranges[i + 2];
        if (pread(limit->file, limit->in, size, (off_t)ranges[i]) != (ssize_t)size) {
            perror("pread");
            exit(1);
        }
        if (made > 0 && libdeflate_deflate_decompress(limit->inflate, limit->in, size, limit->out,
                                                      made, NULL) != LIBDEFLATE_SUCCESS) {
            fprintf(stderr, "libdeflate failed\n");
            exit(1);
        }
        if (made > 0)
            count_member(m, limit->out, made);
        else
            count_member(m, limit->in, size);
    }
}

int main(int argc, char** argv) {
    struct limit limit;
    size_t count = 0, largest = PAGE;
    uint64_t* ranges;
    if (argc != 4) return fprintf(stderr, "usage: random_limit FILE RANGES ROUNDS\n"), 2;
    ranges = read_numbers(argv[2], &count);
    for (size_t i = 0; i < count; i++)
        if (i % 3 != 0 && ranges[i] > largest) largest = (size_t)ranges[i];
    limit.file = open(argv[1], O_RDONLY);
    limit.inflate = libdeflate_alloc_decompressor();
    limit.in = aligned_memory(largest);
    limit.out = aligned_memory(largest);
    best_pass("limit", pass_read, &limit, ranges, count, atoi(argv[3]));
    free(ranges);
    free(limit.in);
    free(limit.out);
    libdeflate_free_decompressor(limit.inflate);
    close(limit.file);
    return 0;
}
