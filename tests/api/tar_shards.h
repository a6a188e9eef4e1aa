/* Small tar shards in a temporary directory, written by the test itself so that a fault of the
 * library cannot hide in the input. Sample i of shard s has the key "s<s>/<i>", a field "txt" with
 * that key in it and a field "bin" whose bytes follow from s and i. */
#ifndef SHARDFEED_TESTS_TAR_SHARDS_H
#define SHARDFEED_TESTS_TAR_SHARDS_H

#include "harness.h"

#include <sys/stat.h>

static char shard_directory[256];

static inline void make_shard_directory(void) {
    const char* parent = getenv("TMPDIR");
    snprintf(shard_directory, sizeof shard_directory, "%s/shardfeed-api-XXXXXX",
             parent != NULL ? parent : "/tmp");
    if (mkdtemp(shard_directory) == NULL) {
        perror("mkdtemp");
        exit(EXIT_FAILURE);
    }
}

static inline void remove_shard_directory(void) {
    char path[600];
    DIR* directory = opendir(shard_directory);
    if (directory == NULL) return;
    for (struct dirent* entry; (entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", shard_directory, entry->d_name);
        unlink(path);
    }
    closedir(directory);
    rmdir(shard_directory);
}

/* The path of a file in the directory, in one of a few static buffers that are used in turn. */
static inline const char* path_of(const char* name) {
    static char paths[8][600];
    static int next = 0;
    char* path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", shard_directory, name);
    return path;
}

static inline void put_member(FILE* file, const char* name, const void* data, size_t size) {
    char header[512] = {0};
    unsigned checksum = 0;
    snprintf(header, 100, "%s", name);
    memcpy(header + 100, "0000644\0000000000\0000000000", 24);
    snprintf(header + 124, 12, "%011o", (unsigned)size);
    memcpy(header + 136, "00000000000", 12);
    memset(header + 148, ' ', 8);
    header[156] = '0';
    memcpy(header + 257, "ustar\00000", 8);
    for (int i = 0; i < 512; ++i) checksum += (unsigned char)header[i];
    snprintf(header + 148, 8, "%06o", checksum);
    fwrite(header, 1, sizeof header, file);
    fwrite(data, 1, size, file);
    static const char zeros[512];
    fwrite(zeros, 1, (512 - size % 512) % 512, file);
}

static inline void put_end(FILE* file) {
    static const char zeros[1024];
    fwrite(zeros, 1, sizeof zeros, file);
}

enum { MOST_BIN = 5000 };

static inline size_t bin_size(int shard, int sample) {
    return (size_t)(shard * 131 + sample * 37) % MOST_BIN;
}
static inline unsigned char bin_byte(int shard, int sample, size_t i) {
    return (unsigned char)((size_t)(shard * 7 + sample * 3) + i);
}

static inline void put_sample(FILE* file, int shard, int sample) {
    char name[100], text[100];
    unsigned char bin[MOST_BIN];
    const size_t size = bin_size(shard, sample);
    for (size_t i = 0; i < size; ++i) bin[i] = bin_byte(shard, sample, i);
    snprintf(name, sizeof name, "s%d/%06d.txt", shard, sample);
    snprintf(text, sizeof text, "s%d/%06d", shard, sample);
    put_member(file, name, text, strlen(text));
    snprintf(name, sizeof name, "s%d/%06d.bin", shard, sample);
    put_member(file, name, bin, size);
}

/* Writes s<shard>.tar with so many samples. */
static inline void write_shard(int shard, int samples) {
    char name[64];
    snprintf(name, sizeof name, "s%d.tar", shard);
    FILE* file = fopen(path_of(name), "wb");
    if (file == NULL) {
        perror(name);
        exit(EXIT_FAILURE);
    }
    for (int i = 0; i < samples; ++i) put_sample(file, shard, i);
    put_end(file);
    fclose(file);
}

/* The sample is whole: its key agrees with its contents. */
static inline bool is_whole(const shf_sample* sample) {
    shf_bytes key, text, bin;
    char copy[64];
    int shard = -1, number = -1;
    shf_sample_key(sample, &key);
    if (key.size >= sizeof copy) return false;
    memcpy(copy, key.data, key.size);
    copy[key.size] = '\0';
    if (sscanf(copy, "s%d/%d", &shard, &number) != 2) return false;
    if (shf_sample_field_count(sample) != 2) return false;
    if (shf_sample_find(sample, "txt", 3, &text) != SHF_OK || text.size != key.size ||
        memcmp(text.data, key.data, key.size) != 0)
        return false;
    if (shf_sample_find(sample, "bin", 3, &bin) != SHF_OK || bin.size != bin_size(shard, number))
        return false;
    for (size_t i = 0; i < bin.size; ++i)
        if (bin.data[i] != bin_byte(shard, number, i)) return false;
    return true;
}

/* Options from a list of names and values that ends with NULL. */
static inline shf_options* options_of(const char* const* settings) {
    shf_options* options = shf_options_new();
    shf_error error;
    for (; settings[0] != NULL; settings += 2)
        CHECK_OK(shf_options_set(options, settings[0], settings[1], &error), &error);
    return options;
}
#define OPTIONS(...) options_of((const char* const[]){__VA_ARGS__, NULL})

/* A stream over one URL of the directory; the options are freed. NULL after a failed check. */
static inline shf_stream* open_stream(const char* name, shf_options* options) {
    const char* url = path_of(name);
    shf_stream* stream = NULL;
    shf_error error;
    CHECK_OK(shf_stream_open(&stream, &url, 1, options, &error), &error);
    shf_options_free(options);
    return stream;
}

#endif
