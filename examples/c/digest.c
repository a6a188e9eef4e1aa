/* Streams shards once for a digest and then again for the speed, as examples/python/digest.py does.
 * Both print the same count and digest.
 *   cc digest.c $(pkg-config --cflags --libs shardfeed zlib) -o digest
 *   ./digest 20 'train-{000..003}.tar'        20: epochs of the second pass */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <shardfeed.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <zlib.h>

static int fail(const shf_error *error) {
    fprintf(stderr, "%s\n", error->message);
    return 1;
}

/* CRC-32 over size and bytes of each key, name and field, so that no two sequences look alike. */
static uLong add(uLong crc, shf_bytes bytes) {
    char size[32];
    const int length = snprintf(size, sizeof size, "%zu:", bytes.size);
    crc = crc32(crc, (const Bytef *)size, (uInt)length);
    return crc32_z(crc, bytes.data, bytes.size);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv) {
    shf_error error;
    if (argc < 3) {
        fprintf(stderr, "usage: digest EPOCHS URL...\n");
        return 2;
    }
    const char *const *urls = (const char *const *)argv + 2;
    const size_t url_count = (size_t)argc - 2;

    shf_stream *stream;
    if (shf_stream_open(&stream, urls, url_count, NULL, &error) != SHF_OK) return fail(&error);
    uint64_t samples = 0;
    uLong digest = 0;
    shf_sample *sample;
    int32_t rc;
    while ((rc = shf_stream_next(stream, &sample, &error)) == SHF_OK) {
        shf_bytes key, name, data;
        shf_sample_key(sample, &key);
        digest = add(digest, key);
        for (size_t i = 0; shf_sample_field(sample, i, &name, &data) == SHF_OK; i++)
            digest = add(add(digest, name), data);
        shf_sample_unref(sample);
        samples++;
    }
    shf_stream_close(stream);
    if (rc != SHF_END) return fail(&error);

    shf_options *options = shf_options_new();
    if (shf_options_set(options, "epochs", argv[1], &error) != SHF_OK) return fail(&error);
    const double start = seconds();
    if (shf_stream_open(&stream, urls, url_count, options, &error) != SHF_OK) return fail(&error);
    uint64_t timed = 0, sum = 0;
    while ((rc = shf_stream_next(stream, &sample, &error)) == SHF_OK) {
        shf_bytes data;
        for (size_t i = 0; shf_sample_field(sample, i, NULL, &data) == SHF_OK; i++)
            sum += data.size ? data.data[0] : 0; /* look at every field */
        shf_sample_unref(sample);
        timed++;
    }
    const double took = seconds() - start;
    shf_stream_close(stream);
    shf_options_free(options);
    if (rc != SHF_END) return fail(&error);
    printf("C       %8" PRIu64 " samples  digest %08lx  %9.0f samples/s\n", samples, digest,
           (double)timed / took);
    return sum == UINT64_MAX; /* keeps the reads */
}
