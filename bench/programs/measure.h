/* What every measuring program counts, and the JSON line it prints.
 *
 * All readers, in C, Rust and Python, do the same work on the bytes: they read one byte of each
 * 4 KiB of each field, counted from the field's start, and add these bytes up. The sum shows that
 * they saw the same data, and no reader is fast because it never looked at a page. */
#ifndef SHARDFEED_BENCH_MEASURE_H
#define SHARDFEED_BENCH_MEASURE_H

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAGE = 4096 };

struct measure {
    double start;         /* of the wall clock                                        */
    double cpu_start;     /* of the CPU clock, all threads                            */
    double first;         /* seconds until the first field or chunk was in hand       */
    double seconds;       /* wall seconds from before open to after close             */
    double cpu_seconds;   /* CPU seconds of the same stretch                          */
    uint64_t samples;     /* 0 for readers that do not group members                  */
    uint64_t members;     /* 0 for readers that do not know members                   */
    uint64_t bytes;       /* of the members' data; of the files for plain read(2)     */
    uint64_t checksum;    /* sum of the bytes touched                                 */
    uint64_t everything;  /* sum of all bytes; 0 for readers that do not look at them */
    uint64_t batches;     /* 0 for readers that do not make any                       */
    uint64_t labels;      /* sum of the numbers in cls, where they are decoded        */
    uint64_t engine_peak; /* the library's own count of its payload memory; 0: none   */
};

static inline double measure_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline void measure_start(struct measure* m) {
    memset(m, 0, sizeof *m);
    m->cpu_start = measure_clock(CLOCK_PROCESS_CPUTIME_ID);
    m->start = measure_clock(CLOCK_MONOTONIC);
}

/* The caller asks only once, so that the clock is not part of the loop. */
static inline void measure_first(struct measure* m) {
    m->first = measure_clock(CLOCK_MONOTONIC) - m->start;
}

static inline void measure_stop(struct measure* m) {
    m->seconds = measure_clock(CLOCK_MONOTONIC) - m->start;
    m->cpu_seconds = measure_clock(CLOCK_PROCESS_CPUTIME_ID) - m->cpu_start;
}

/* Sum of the bytes 0, 4096, 8192, ... of a field. */
static inline uint64_t touch(const uint8_t* data, size_t size) {
    uint64_t sum = 0;
    for (size_t i = 0; i < size; i += PAGE) sum += data[i];
    return sum;
}

/* Sum of all bytes of a field, in pieces of which 16 bits hold the sum: compilers make vectors of
 * these, and adding up takes less time than reading. */
static inline uint64_t touch_all(const uint8_t* data, size_t size) {
    enum { PIECE = 256 };
    uint64_t sum = 0;
    for (; size >= PIECE; data += PIECE, size -= PIECE) {
        uint16_t piece = 0;
        for (int i = 0; i < PIECE; i++) piece = (uint16_t)(piece + data[i]);
        sum += piece;
    }
    for (size_t i = 0; i < size; i++) sum += data[i];
    return sum;
}

/* touch() for a piece of a field that starts at byte `offset` of it. */
static inline uint64_t touch_piece(const uint8_t* data, size_t size, uint64_t offset) {
    const size_t skip = (size_t)((PAGE - offset % PAGE) % PAGE);
    return skip < size ? touch(data + skip, size - skip) : 0;
}

/* The peak of this program. ru_maxrss would also count the process that started it, because the
 * kernel carries that figure across exec. */
static inline uint64_t peak_rss_bytes(void) {
    char line[256];
    uint64_t kib = 0;
    FILE* status = fopen("/proc/self/status", "r");
    if (status == NULL) return 0;
    while (fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, "VmHWM:", 6) == 0) kib = strtoull(line + 6, NULL, 10);
    fclose(status);
    return kib * 1024;
}

static inline void measure_print(const struct measure* m, const char* reader) {
    printf("{\"reader\": \"%s\", \"samples\": %" PRIu64 ", \"members\": %" PRIu64
           ", \"bytes\": %" PRIu64 ", \"checksum\": %" PRIu64 ", \"everything\": %" PRIu64
           ", \"batches\": %" PRIu64 ", \"labels\": %" PRIu64
           ", \"seconds\": %.6f, \"cpu_seconds\": %.6f, \"first_seconds\": %.6f"
           ", \"peak_rss_bytes\": %" PRIu64 ", \"engine_peak_bytes\": %" PRIu64 "}\n",
           reader, m->samples, m->members, m->bytes, m->checksum, m->everything, m->batches,
           m->labels, m->seconds, m->cpu_seconds, m->first, peak_rss_bytes(), m->engine_peak);
}

/* A size given on the command line; the program ends if it is not one. */
static inline size_t size_argument(const char* text) {
    char* end = NULL;
    const unsigned long long value = strtoull(text, &end, 10);
    if (end == text || *end != '\0' || value == 0 || value > ((size_t)-1) / 4) {
        fprintf(stderr, "not a size: %s\n", text);
        exit(2);
    }
    return (size_t)value;
}

static inline void* aligned_memory(size_t size) {
    void* memory = NULL;
    if (posix_memalign(&memory, PAGE, size) != 0) {
        fprintf(stderr, "no memory for %zu bytes\n", size);
        exit(1);
    }
    return memory;
}

#endif
