/* Lists the members of a tar or ZIP file from front to back, and reads all of them.
 *   cc 04_members.c $(pkg-config --cflags --libs shardfeed) -o 04_members
 *   ./04_members old.tar.gz      or - or "pipe:COMMAND" */
#include <shardfeed.h>
#include <stdio.h>

int main(int argc, char **argv) { /* old.tar.gz */
    static char piece[65536];
    shf_error error = {0};
    shf_members *members = NULL;
    shf_bytes name;
    size_t size = 0;
    int32_t rc = shf_members_open(&members, argc == 2 ? argv[1] : "-", NULL, &error);
    while (rc == SHF_OK && (rc = shf_members_next(members, &name, &error)) == SHF_OK) {
        uint64_t bytes = 0;
        do {
            rc = shf_members_read(members, piece, sizeof piece, &size, &error);
            bytes += size; /* fwrite(piece, 1, size, ...) */
        } while (rc == SHF_OK && size > 0);
        printf("%.*s: %llu bytes\n", (int)name.size, (const char *)name.data,
               (unsigned long long)bytes);
    }
    if (rc != SHF_END) fprintf(stderr, "%s\n", error.message);
    shf_members_close(members);
    return rc != SHF_END;
}
