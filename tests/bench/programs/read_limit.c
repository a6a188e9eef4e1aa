/* read_limit CHUNK FILE...
 *
 * The limit of everything: read(2) into one recycled, page-aligned buffer of CHUNK bytes, one byte
 * of each of its pages touched. What it prints as bytes and checksum are those of the files. */
#define _POSIX_C_SOURCE 200809L

#include "measure.h"

#include <fcntl.h>
#include <unistd.h>

int main(int argc, char** argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: read_limit CHUNK FILE...\n");
        return 2;
    }
    const size_t chunk = (size_argument(argv[1]) + PAGE - 1) / PAGE * PAGE;
    struct measure m;
    measure_start(&m);
    uint8_t* buffer = aligned_memory(chunk);
    for (int i = 2; i < argc; i++) {
        const int fd = open(argv[i], O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            perror(argv[i]);
            return 1;
        }
        ssize_t got;
        while ((got = read(fd, buffer, chunk)) > 0) {
            if (m.bytes == 0) measure_first(&m);
            m.checksum += touch(buffer, (size_t)got);
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
