/* Prints the keys of shards that the program itself serves: data://NAME is a file of a folder.
 *   cc 05_source.c $(pkg-config --cflags --libs shardfeed) -o 05_source
 *   ./05_source /data 'data://train-{000..003}.tar' */
#include <shardfeed.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int32_t failed(shf_error *error, const char *doing) {
    error->os_error = errno;
    snprintf(error->message, sizeof error->message, "%s: %s", doing, strerror(errno));
    return SHF_E_IO;
}

static int32_t open_file(void *folder, const char *url, void **object, uint32_t *flags, shf_error *error) {
    char path[4096];
    (void)flags; /* several threads may read a file at any offset */
    snprintf(path, sizeof path, "%s/%s", (const char *)folder, url + strlen("data://"));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int *file = fd < 0 ? NULL : malloc(sizeof fd);
    if (!file) return failed(error, "open");
    *file = fd;
    *object = file;
    return SHF_OK;
}

static int32_t size_of(void *file, uint64_t *size, shf_error *error) {
    struct stat info;
    if (fstat(*(int *)file, &info) != 0) return failed(error, "fstat");
    *size = (uint64_t)info.st_size;
    return SHF_OK;
}

static int64_t read_at(void *file, uint64_t offset, uint8_t *out, size_t size, shf_error *error) {
    ssize_t count = pread(*(int *)file, out, size, (off_t)offset);
    return count < 0 ? failed(error, "read") : count;
}

static void close_file(void *file) {
    close(*(int *)file);
    free(file);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    const shf_source source = {.struct_size = sizeof source, .open = open_file, .size = size_of,
                               .read_at = read_at, .close = close_file};
    shf_error error;
    shf_options *options = shf_options_new();
    shf_stream *stream = NULL;
    int32_t rc = shf_options_set_source(options, "data", &source, argv[1], &error);
    if (rc == SHF_OK)
        rc = shf_stream_open(&stream, (const char *const *)argv + 2, (size_t)argc - 2, options, &error);
    shf_options_free(options);
    for (shf_sample *sample; rc == SHF_OK && (rc = shf_stream_next(stream, &sample, &error)) == SHF_OK;
         shf_sample_unref(sample)) {
        shf_bytes key;
        shf_sample_key(sample, &key);
        printf("%.*s\n", (int)key.size, (const char *)key.data);
    }
    shf_stream_close(stream);
    return rc == SHF_END ? 0 : (fprintf(stderr, "%s\n", error.message), 1);
}
