/* ZIP files of stored members, written by the test itself (APPNOTE.TXT 6.3.10). */
#ifndef SHARDFEED_TESTS_ZIP_FILE_H
#define SHARDFEED_TESTS_ZIP_FILE_H

#include "harness.h"

enum { ZIP_MOST_DIRECTORY = 4 << 20 };

typedef struct zip_file {
    FILE* file;
    unsigned char* directory;
    size_t directory_size;
    unsigned count;
} zip_file;

static inline uint32_t zip_crc(const unsigned char* data, size_t size) {
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; ++i) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc % 2 == 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static inline void zip_number(unsigned char* to, uint64_t value, int width) {
    for (int i = 0; i < width; ++i) to[i] = (unsigned char)(value >> (8 * i));
}

static inline void zip_start(zip_file* zip, const char* path) {
    *zip = (zip_file){fopen(path, "wb"), malloc(ZIP_MOST_DIRECTORY), 0, 0};
    if (zip->file == NULL || zip->directory == NULL) {
        perror(path);
        exit(EXIT_FAILURE);
    }
}

static inline void zip_add(zip_file* zip, const char* name, const void* data, size_t size) {
    unsigned char local[30] = "PK\3\4", *central = zip->directory + zip->directory_size;
    const size_t name_size = strlen(name);
    zip_number(local + 4, 20, 2);    /* version that is needed */
    zip_number(local + 12, 0x21, 2); /* 1980-01-01 */
    zip_number(local + 14, zip_crc(data, size), 4);
    zip_number(local + 18, size, 4);
    zip_number(local + 22, size, 4);
    zip_number(local + 26, name_size, 2);
    memset(central, 0, 46);
    memcpy(central, "PK\1\2", 4);
    zip_number(central + 4, 20, 2);
    memcpy(central + 6, local + 4, 26);
    zip_number(central + 42, (uint64_t)ftell(zip->file), 4);
    memcpy(central + 46, name, name_size);
    zip->directory_size += 46 + name_size;
    ++zip->count;
    fwrite(local, 1, sizeof local, zip->file);
    fwrite(name, 1, name_size, zip->file);
    fwrite(data, 1, size, zip->file);
}

static inline void zip_end(zip_file* zip) {
    unsigned char end[22] = "PK\5\6";
    zip_number(end + 8, zip->count, 2);
    zip_number(end + 10, zip->count, 2);
    zip_number(end + 12, zip->directory_size, 4);
    zip_number(end + 16, (uint64_t)ftell(zip->file), 4);
    fwrite(zip->directory, 1, zip->directory_size, zip->file);
    fwrite(end, 1, sizeof end, zip->file);
    fclose(zip->file);
    free(zip->directory);
}

#endif
