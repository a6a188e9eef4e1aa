/* shardfeed_random MODE FILE ORDER ROUNDS [NAME=VALUE...]
 *
 * Modes: open      opens the archive, once a round
 *        read      shf_archive_read of each member in ORDER, a file of 64-bit positions
 *        many      shf_archive_read_many of 256 at a time
 *        get       shf_dataset_get of each sample in ORDER
 *        get_many  shf_dataset_get_many of 256 at a time
 * Every field counts as a member. */
#define _POSIX_C_SOURCE 200809L

#include "random_order.h"

#include <shardfeed.h>

enum { BATCH = 256 };

struct reader {
    const char* path;
    shf_options* options;
    shf_archive* archive;
    shf_dataset* dataset;
    uint8_t* buffer; /* for BATCH members of the largest size */
    size_t largest;
};

static void check(int32_t code, const shf_error* error) {
    if (code == SHF_OK) return;
    fprintf(stderr, "%s: %s\n", error->message, shf_error_name(code));
    exit(1);
}

static void pass_open(void* reader, const uint64_t* order, size_t count, struct measure* m) {
    struct reader* r = reader;
    shf_archive* archive;
    shf_error error;
    (void)order;
    (void)count;
    check(shf_archive_open(&archive, r->path, r->options, &error), &error);
    m->members += shf_archive_member_count(archive);
    shf_archive_close(archive);
}

static void pass_read(void* reader, const uint64_t* order, size_t count, struct measure* m) {
    struct reader* r = reader;
    shf_error error;
    for (size_t i = 0; i < count; i++) {
        const size_t size = (size_t)shf_archive_info(r->archive, order[i], SHF_MEMBER_SIZE);
        check(shf_archive_read(r->archive, order[i], r->buffer, r->largest, &error), &error);
        count_member(m, r->buffer, size);
    }
}

static void pass_many(void* reader, const uint64_t* order, size_t count, struct measure* m) {
    struct reader* r = reader;
    shf_error error;
    void* buffers[BATCH];
    for (size_t k = 0; k < BATCH; k++) buffers[k] = r->buffer + k * r->largest;
    for (size_t i = 0; i < count; i += BATCH) {
        const size_t n = count - i < BATCH ? count - i : BATCH;
        check(shf_archive_read_many(r->archive, order + i, n, buffers, &error), &error);
        for (size_t k = 0; k < n; k++)
            count_member(m, buffers[k],
                         (size_t)shf_archive_info(r->archive, order[i + k], SHF_MEMBER_SIZE));
    }
}

static void take(shf_sample* sample, struct measure* m) {
    shf_bytes data;
    for (size_t i = 0; shf_sample_field(sample, i, NULL, &data) == SHF_OK; i++)
        count_member(m, data.data, data.size);
    m->samples++;
    shf_sample_unref(sample);
}

static void pass_get(void* reader, const uint64_t* order, size_t count, struct measure* m) {
    struct reader* r = reader;
    shf_error error;
    shf_sample* sample;
    for (size_t i = 0; i < count; i++) {
        check(shf_dataset_get(r->dataset, order[i], &sample, &error), &error);
        take(sample, m);
    }
}

static void pass_get_many(void* reader, const uint64_t* order, size_t count, struct measure* m) {
    struct reader* r = reader;
    shf_error error;
    shf_sample* samples[BATCH];
    for (size_t i = 0; i < count; i += BATCH) {
        const size_t n = count - i < BATCH ? count - i : BATCH;
        check(shf_dataset_get_many(r->dataset, order + i, n, samples, &error), &error);
        for (size_t k = 0; k < n; k++) take(samples[k], m);
    }
}

int main(int argc, char** argv) {
    static const struct {
        const char* name;
        random_pass pass;
        int dataset;
    } modes[] = {{"open", pass_open, 0},
                 {"read", pass_read, 0},
                 {"many", pass_many, 0},
                 {"get", pass_get, 1},
                 {"get_many", pass_get_many, 1}};
    struct reader r = {NULL, shf_options_new(), NULL, NULL, NULL, 0};
    shf_error error;
    size_t count = 0, mode = 0;
    uint64_t* order;
    if (argc < 5) return fprintf(stderr, "usage: shardfeed_random MODE FILE ORDER ROUNDS\n"), 2;
    while (mode < 5 && strcmp(modes[mode].name, argv[1]) != 0) mode++;
    if (mode == 5) return fprintf(stderr, "no mode %s\n", argv[1]), 2;
    r.path = argv[2];
    order = read_numbers(argv[3], &count);
    for (int i = 5; i < argc; i++) {
        char* equals = strchr(argv[i], '=');
        if (equals == NULL) return fprintf(stderr, "not NAME=VALUE: %s\n", argv[i]), 2;
        *equals = '\0';
        check(shf_options_set(r.options, argv[i], equals + 1, &error), &error);
    }
    if (modes[mode].dataset) {
        const char* urls[1] = {r.path};
        check(shf_dataset_open(&r.dataset, urls, 1, r.options, &error), &error);
    } else {
        check(shf_archive_open(&r.archive, r.path, r.options, &error), &error);
        for (uint64_t i = 0; i < shf_archive_member_count(r.archive); i++) {
            const size_t size = (size_t)shf_archive_info(r.archive, i, SHF_MEMBER_SIZE);
            if (size > r.largest) r.largest = size;
        }
        r.largest = (r.largest + PAGE) / PAGE * PAGE;
        r.buffer = aligned_memory(BATCH * r.largest);
    }
    best_pass(argv[1], modes[mode].pass, &r, order, count, atoi(argv[4]));
    shf_archive_close(r.archive);
    shf_dataset_close(r.dataset);
    shf_options_free(r.options);
    free(r.buffer);
    free(order);
    return 0;
}
