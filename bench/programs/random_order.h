/* What the programs that read members at random share: the order, and the rounds over it. */
#ifndef SHARDFEED_BENCH_RANDOM_ORDER_H
#define SHARDFEED_BENCH_RANDOM_ORDER_H

#include "measure.h"

/* The numbers of a file of 64-bit ones, as the script writes it. */
static inline uint64_t* read_numbers(const char* path, size_t* count) {
    FILE* file = fopen(path, "rb");
    uint64_t* numbers = NULL;
    long size = 0;
    if (file == NULL || fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) < 0) {
        perror(path);
        exit(1);
    }
    rewind(file);
    numbers = (uint64_t*)aligned_memory((size_t)size + 1);
    *count = fread(numbers, 8, (size_t)size / 8, file);
    fclose(file);
    return numbers;
}

/* One pass over the order; adds what it read to `m`. Ends the program when a read fails. */
typedef void (*random_pass)(void* reader, const uint64_t* order, size_t count, struct measure* m);

/* Prints the fastest of `rounds` passes. */
static inline void best_pass(const char* name, random_pass pass, void* reader,
                             const uint64_t* order, size_t count, int rounds) {
    struct measure best = {0}, m;
    for (int i = 0; i < rounds; i++) {
        measure_start(&m);
        pass(reader, order, count, &m);
        measure_stop(&m);
        if (i == 0 || m.seconds < best.seconds) best = m;
    }
    measure_print(&best, name);
}

static inline void count_member(struct measure* m, const uint8_t* data, size_t size) {
    m->members++;
    m->bytes += size;
    m->checksum += touch(data, size);
}

#endif
