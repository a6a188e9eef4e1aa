/* libarchive_walk BLOCK FILE...
 *
 * libarchive's reader, used as fast as it allows: archive_read_data_block hands out pieces of its
 * own buffer without a copy. Names are not fetched and members are not grouped. */
#define _POSIX_C_SOURCE 200809L

#include "measure.h"

#include <archive.h>
#include <archive_entry.h>

static void fail(struct archive* archive, const char* path) {
    fprintf(stderr, "%s: %s\n", path, archive_error_string(archive));
    exit(1);
}

static void walk(const char* path, size_t block_size, struct measure* m) {
    struct archive* archive = archive_read_new();
    archive_read_support_filter_all(archive);
    archive_read_support_format_tar(archive);
    if (archive_read_open_filename(archive, path, block_size) != ARCHIVE_OK) fail(archive, path);
    struct archive_entry* entry;
    int rc;
    while ((rc = archive_read_next_header(archive, &entry)) == ARCHIVE_OK) {
        const void* data;
        size_t size;
        int64_t offset;
        while ((rc = archive_read_data_block(archive, &data, &size, &offset)) == ARCHIVE_OK) {
            if (m->bytes == 0) measure_first(m);
            m->checksum += touch_piece(data, size, (uint64_t)offset);
            m->bytes += size;
        }
        if (rc != ARCHIVE_EOF) fail(archive, path);
        m->members++;
    }
    if (rc != ARCHIVE_EOF) fail(archive, path);
    archive_read_free(archive);
}

int main(int argc, char** argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: libarchive_walk BLOCK FILE...\n");
        return 2;
    }
    const size_t block_size = size_argument(argv[1]);
    struct measure m;
    measure_start(&m);
    for (int i = 2; i < argc; i++) walk(argv[i], block_size, &m);
    measure_stop(&m);
    measure_print(&m, "libarchive");
    return 0;
}
