/* shardfeed_order save SAMPLES FILE [NAME=VALUE...] -- URL...
 * shardfeed_order restore FILE [NAME=VALUE...] -- URL...
 * shardfeed_order index -- URL...
 * shardfeed_order keys [NAME=VALUE...] -- URL...
 *
 * save     takes SAMPLES samples, and then SAVES times: saves the state, and takes one more. FILE
 *          gets the last state. `save_seconds` is the median, with the state's bytes in hand.
 * restore  opens the stream, restores the state of FILE and takes one sample. `first_seconds` is
 *          the time of all three; the file is read before. `more_seconds` is the time of the next
 *          MORE samples, or as many as there are.
 * index    makes the index of every shard; `indexes` is how many.
 * keys     prints the key of every sample, a line each. */
#define _POSIX_C_SOURCE 200809L

#include "measure.h"
#include "stream_options.h"

enum { SAVES = 201, LARGEST_STATE = 1 << 24, MORE = 2000 };

static int usage(void) {
    fprintf(stderr,
            "usage: shardfeed_order save SAMPLES FILE|restore FILE|index|keys [NAME=VALUE...] -- "
            "URL...\n");
    return 2;
}

static int ascending(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static int32_t take(shf_stream* stream, shf_error* error) {
    shf_sample* sample = NULL;
    const int32_t rc = shf_stream_next(stream, &sample, error);
    shf_sample_unref(sample);
    return rc;
}

static int32_t save_often(shf_stream* stream, uint64_t samples, FILE* file, shf_error* error) {
    int32_t rc = SHF_OK;
    for (uint64_t i = 0; i < samples && rc == SHF_OK; i++) rc = take(stream, error);
    double times[SAVES];
    size_t largest = 0;
    for (int i = 0; i < SAVES && rc == SHF_OK; i++) {
        shf_state* state = NULL;
        shf_bytes bytes;
        const double start = measure_clock(CLOCK_MONOTONIC);
        rc = shf_stream_save(stream, 0, &state, error);
        shf_state_bytes(state, &bytes);
        times[i] = measure_clock(CLOCK_MONOTONIC) - start;
        if (bytes.size > largest) largest = bytes.size;
        if (rc == SHF_OK && i < SAVES - 1) rc = take(stream, error);
        if (rc == SHF_OK && i == SAVES - 1) fwrite(bytes.data, 1, bytes.size, file);
        shf_state_free(state);
    }
    if (rc != SHF_OK) return rc;
    qsort(times, SAVES, sizeof times[0], ascending);
    printf("{\"save_seconds\": %.9f, \"state_bytes\": %zu}\n", times[SAVES / 2], largest);
    return SHF_OK;
}

static int save(int argc, char** argv) {
    const int urls = first_url(argc, argv, 4);
    if (argc < 5 || urls == 0) return usage();
    FILE* file = fopen(argv[3], "wb");
    if (file == NULL) {
        perror(argv[3]);
        return 1;
    }
    shf_error error = {0, 0, 0, ""};
    shf_stream* stream = NULL;
    int32_t rc = open_stream(&stream, argc, argv, 4, urls, &error);
    if (rc == SHF_OK) rc = save_often(stream, strtoull(argv[2], NULL, 10), file, &error);
    shf_stream_close(stream);
    if (fclose(file) != 0) {
        perror(argv[3]);
        return 1;
    }
    return rc == SHF_OK ? 0 : fail(rc, &error);
}

static int restore(int argc, char** argv) {
    const int urls = first_url(argc, argv, 3);
    if (argc < 4 || urls == 0) return usage();
    uint8_t* bytes = malloc(LARGEST_STATE);
    FILE* file = fopen(argv[2], "rb");
    if (file == NULL || bytes == NULL) {
        perror(argv[2]);
        free(bytes);
        return 1;
    }
    const size_t size = fread(bytes, 1, LARGEST_STATE, file);
    fclose(file);
    shf_error error = {0, 0, 0, ""};
    struct measure m;
    measure_start(&m);
    shf_stream* stream = NULL;
    int32_t rc = open_stream(&stream, argc, argv, 3, urls, &error);
    if (rc == SHF_OK) rc = shf_stream_restore(stream, bytes, size, &error);
    if (rc == SHF_OK) rc = take(stream, &error);
    measure_first(&m);
    const double start = measure_clock(CLOCK_MONOTONIC);
    for (int i = 0; i < MORE && rc == SHF_OK; i++) rc = take(stream, &error);
    const double more = measure_clock(CLOCK_MONOTONIC) - start;
    shf_stream_close(stream);
    free(bytes);
    if (rc != SHF_OK && rc != SHF_END) return fail(rc, &error);
    printf("{\"first_seconds\": %.6f, \"more_seconds\": %.6f}\n", m.first, more);
    return 0;
}

static int make_indexes(int argc, char** argv) {
    const int urls = first_url(argc, argv, 2);
    if (urls == 0) return usage();
    shf_error error = {0, 0, 0, ""};
    for (int i = urls; i < argc; i++) {
        const int32_t rc = shf_index_build(argv[i], NULL, &error);
        if (rc != SHF_OK) return fail(rc, &error);
    }
    printf("{\"indexes\": %d}\n", argc - urls);
    return 0;
}

static int keys(int argc, char** argv) {
    const int urls = first_url(argc, argv, 2);
    if (urls == 0) return usage();
    shf_error error = {0, 0, 0, ""};
    shf_stream* stream = NULL;
    shf_sample* sample = NULL;
    int32_t rc = open_stream(&stream, argc, argv, 2, urls, &error);
    while (rc == SHF_OK && (rc = shf_stream_next(stream, &sample, &error)) == SHF_OK) {
        shf_bytes key;
        shf_sample_key(sample, &key);
        printf("%.*s\n", (int)key.size, (const char*)key.data);
        shf_sample_unref(sample);
    }
    shf_stream_close(stream);
    return rc == SHF_END ? 0 : fail(rc, &error);
}

int main(int argc, char** argv) {
    if (argc > 1 && strcmp(argv[1], "save") == 0) return save(argc, argv);
    if (argc > 1 && strcmp(argv[1], "restore") == 0) return restore(argc, argv);
    if (argc > 1 && strcmp(argv[1], "index") == 0) return make_indexes(argc, argv);
    if (argc > 1 && strcmp(argv[1], "keys") == 0) return keys(argc, argv);
    return usage();
}
