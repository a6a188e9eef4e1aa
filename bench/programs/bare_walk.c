/* bare_walk SLAB FILE...
 *
 * What a tar reader can reach that reads with read(2) and hands out whole members: it looks at the
 * size field of each header, at nothing else, groups nothing and checks nothing.
 *
 * Memory is two areas of the same size. read(2) always lands on the page-aligned middle, because
 * the kernel copies half as fast to any other place; what a read left over, an incomplete member,
 * is carried to just before the middle, so that the next read completes it in one piece. */
#define _POSIX_C_SOURCE 200809L

#include "measure.h"

#include <fcntl.h>
#include <unistd.h>

enum { BLOCK = 512, SIZE_FIELD = 124 };

struct slab {
    uint8_t* memory;
    size_t area; /* bytes on each side of the middle */
    size_t step; /* bytes to read at once            */
};

/* Reads `size` bytes; fewer at the end of the file. */
static size_t read_fully(int fd, uint8_t* to, size_t size, const char* path) {
    size_t done = 0;
    while (done < size) {
        const ssize_t got = read(fd, to + done, size - done);
        if (got < 0) {
            perror(path);
            exit(1);
        }
        if (got == 0) break;
        done += (size_t)got;
    }
    return done;
}

static uint64_t octal(const uint8_t* digits) {
    uint64_t value = 0;
    for (int i = 0; i < 11; i++) value = value * 8 + (uint64_t)(digits[i] - '0');
    return value;
}

static void grow(struct slab* slab, size_t area, const uint8_t* carry, size_t carry_size) {
    uint8_t* memory = aligned_memory(2 * area);
    memcpy(memory + area - carry_size, carry, carry_size);
    free(slab->memory);
    slab->memory = memory;
    slab->area = area;
}

static void walk(struct slab* slab, const char* path, struct measure* m) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        perror(path);
        exit(1);
    }
    size_t carry = 0;
    size_t missing = 0; /* of the member that is carried; 0 when not even its header is complete */
    for (;;) {
        size_t want = slab->step;
        if (missing > want) want = (missing + PAGE - 1) / PAGE * PAGE;
        if (want > slab->area) grow(slab, want, slab->memory + slab->area - carry, carry);
        uint8_t* middle = slab->memory + slab->area;
        const size_t got = read_fully(fd, middle, want, path);
        if (got == 0) {
            fprintf(stderr, "%s: ends without end marker\n", path);
            exit(1);
        }
        const uint8_t* at = middle - carry;
        const uint8_t* end = middle + got;
        missing = 0;
        while ((size_t)(end - at) >= BLOCK) {
            if (at[0] == 0) {
                close(fd);
                return;
            }
            const size_t size = (size_t)octal(at + SIZE_FIELD);
            const size_t whole = BLOCK + (size + BLOCK - 1) / BLOCK * BLOCK;
            if ((size_t)(end - at) < whole) {
                missing = whole - (size_t)(end - at);
                break;
            }
            if (m->members == 0) measure_first(m);
            m->checksum += touch(at + BLOCK, size);
            m->bytes += size;
            m->members++;
            at += whole;
        }
        carry = (size_t)(end - at);
        memcpy(slab->memory + slab->area - carry, at, carry);
    }
}

int main(int argc, char** argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: bare_walk SLAB FILE...\n");
        return 2;
    }
    const size_t step = (size_argument(argv[1]) + PAGE - 1) / PAGE * PAGE;
    struct measure m;
    measure_start(&m);
    struct slab slab = {aligned_memory(2 * step), step, step};
    for (int i = 2; i < argc; i++) walk(&slab, argv[i], &m);
    free(slab.memory);
    measure_stop(&m);
    measure_print(&m, "bare walk");
    return 0;
}
