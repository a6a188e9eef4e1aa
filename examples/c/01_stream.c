/* Streams shards and tells the size of each jpg.
 *   cc 01_stream.c $(pkg-config --cflags --libs shardfeed) -o 01_stream
 *   ./01_stream 'train-{000..003}.tar' */
#include <shardfeed.h>
#include <stdio.h>

int main(int argc, char **argv) {
    shf_error error;
    shf_stream *stream;
    if (shf_stream_open(&stream, (const char *const *)argv + 1, argc - 1, NULL, &error) != SHF_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    shf_sample *sample;
    int32_t rc;
    while ((rc = shf_stream_next(stream, &sample, &error)) == SHF_OK) {
        shf_bytes key, jpg;
        shf_sample_key(sample, &key);
        if (shf_sample_find(sample, "jpg", 3, &jpg) == SHF_OK)
            printf("%.*s: %zu bytes of jpg\n", (int)key.size, (const char *)key.data, jpg.size);
        shf_sample_unref(sample);
    }
    if (rc != SHF_END) fprintf(stderr, "%s\n", error.message);
    shf_stream_close(stream);
    return rc != SHF_END;
}
