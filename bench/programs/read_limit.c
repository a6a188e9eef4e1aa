/* read_limit CHUNK touch|every FILE...
 *
 * The limit of everything: read(2) into one recycled, page-aligned buffer of CHUNK bytes, one byte
 * of each of its pages touched, or every byte added up. What it prints as bytes and sums are those
 * of the files. */
#define _POSIX_C_SOURCE 200809L

#include "measure.h"

#include <fcntl.h>
#include <unistd.h>

int main(int argc, char** argv) {
    const int every = argc > 2 && strcmp(argv[2], "every") == 0;
    if (argc < 4 || (!every && strcmp(argv[2], "touch") != 0)) {
        fprintf(stderr, "usage: read_limit CHUNK touch|every FILE...\n");
        return 2;
    }
    const size_t chunk = (size_argument(argv[1]) + PAGE - 1) / PAGE * PAGE;
    struct measure m;
    measure_start(&m);
    uint8_t* buffer = aligned_memory(chunk);
    for (int i = 3; i < argc; i++) {
        const int fd = open(argv[i], O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            perror(argv[i]);
            return 1;
        }
        ssize_t got;
        while ((got = read(fd, buffer, chunk)) > 0) {
            if (m.bytes == 0) measure_first(&m);
            m.checksum += touch(buffer, (size_t)got);
            if (every) m.everything += touch_all(buffer, (size_t)got);
            m.bytes += (uint64_t)got;
        }
        if (got < 0) {
            perror(argv[i]);
            return 1;
        }
        close(fd);
    }
    free(buffer);
    measure_stop(&m);
    measure_print(&m, "read(2)");
    return 0;
}
