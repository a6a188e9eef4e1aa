/* libzip_random open|read FILE ORDER ROUNDS: the same with libzip, which checks the CRC too. */
#define _POSIX_C_SOURCE 200809L

#include "random_order.h"

#include <zip.h>

static zip_t* open_file(const char* path) {
    int code = 0;
    zip_t* file = zip_open(path, ZIP_RDONLY, &code);
    if (file != NULL) return file;
    fprintf(stderr, "%s: libzip error %d\n", path, code);
    exit(1);
}

static void pass_open(void* reader, const uint64_t* order, size_t count, struct measure* m) {
    zip_t* file = open_file(reader);
    (void)order;
    (void)count;
    m->members += (uint64_t)zip_get_num_entries(file, 0);
    zip_discard(file);
}

static void pass_read(void* reader, const uint64_t* order, size_t count, struct measure* m) {
    static uint8_t buffer[1 << 20];
    for (size_t i = 0; i < count; i++) {
        zip_file_t* member = zip_fopen_index(reader, order[i], 0);
        const zip_int64_t size = member == NULL ? -1 : zip_fread(member, buffer, sizeof buffer);
        if (size < 0 || zip_fclose(member) != 0) {
            fprintf(stderr, "libzip cannot read member %" PRIu64 "\n", order[i]);
            exit(1);
        }
        count_member(m, buffer, (size_t)size);
    }
}

int main(int argc, char** argv) {
    size_t count = 0;
    uint64_t* order;
    if (argc != 5) return fprintf(stderr, "usage: libzip_random MODE FILE ORDER ROUNDS\n"), 2;
    order = read_numbers(argv[3], &count);
    if (strcmp(argv[1], "open") == 0) {
        best_pass("open", pass_open, argv[2], order, count, atoi(argv[4]));
    } else {
        zip_t* file = open_file(argv[2]);
        best_pass("read", pass_read, file, order, count, atoi(argv[4]));
        zip_discard(file);
    }
    free(order);
    return 0;
}
