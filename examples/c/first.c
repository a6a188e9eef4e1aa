/* Streams shards and prints each sample's key and fields.
 *   cc first.c $(pkg-config --cflags --libs shardfeed) -o first && ./first 'train-{000..003}.tar' */
#include <inttypes.h>
#include <shardfeed.h>
#include <stdio.h>

int main(int argc, char **argv) {
    shf_error error;
    shf_stream *stream;
    const char *const *urls = (const char *const *)argv + 1;
    if (shf_stream_open(&stream, urls, (size_t)argc - 1, NULL, &error) != SHF_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    shf_sample *sample;
    int32_t rc;
    while ((rc = shf_stream_next(stream, &sample, &error)) == SHF_OK) {
        shf_bytes key, name, data;
        shf_sample_key(sample, &key);
        printf("%.*s", (int)key.size, (const char *)key.data);
        for (size_t i = 0; shf_sample_field(sample, i, &name, &data) == SHF_OK; i++)
            printf(" %.*s:%zu", (int)name.size, (const char *)name.data, data.size);
        printf("\n");
        shf_sample_unref(sample);
    }
    if (rc != SHF_END) fprintf(stderr, "%s\n", error.message);
    shf_stream_close(stream);
    return rc == SHF_END ? 0 : 1;
}
