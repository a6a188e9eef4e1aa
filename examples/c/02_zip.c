/* Writes one member of a ZIP or tar file to standard output.
 *   cc 02_zip.c $(pkg-config --cflags --libs shardfeed) -o 02_zip
 *   ./02_zip images.zip img_000.png >img_000.png */
#include <shardfeed.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) { /* images.zip img_000.png */
    shf_error error = {0};
    shf_archive *archive = NULL;
    uint64_t at, size = 0;
    void *bytes = NULL;
    if (argc == 3 && shf_archive_open(&archive, argv[1], NULL, &error) == SHF_OK &&
        shf_archive_find(archive, argv[2], SHF_STRLEN, &at, &error) == SHF_OK &&
        (bytes = malloc(size = shf_archive_info(archive, at, SHF_MEMBER_SIZE))) != NULL &&
        shf_archive_read(archive, at, bytes, size, &error) == SHF_OK)
        fwrite(bytes, 1, size, stdout);
    fprintf(stderr, "%s\n", error.message);
    free(bytes);
    shf_archive_close(archive);
    return error.code != SHF_OK;
}
