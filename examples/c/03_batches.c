/* Takes decoded batches: images of 64 x 64 pixels and their classes.
 *   cc 03_batches.c $(pkg-config --cflags --libs shardfeed) -o 03_batches
 *   ./03_batches 'train-{000..003}.tar' */
#include <shardfeed.h>
#include <stdio.h>

int main(int argc, char **argv) {
    shf_error error;
    shf_options *options = shf_options_new();
    shf_stream *stream;
    const char *text = "batch=256,decode='jpg;png:image/rgb8/resize=64x64, cls:int'";
    if (shf_options_set_all(options, text, &error) != SHF_OK ||
        shf_stream_open(&stream, (const char *const *)argv + 1, argc - 1, options, &error) != SHF_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    shf_batch *batch;
    int32_t rc;
    while ((rc = shf_stream_next_batch(stream, &batch, &error)) == SHF_OK) {
        shf_array images, labels;
        shf_batch_column(batch, 0, NULL, &images);
        shf_batch_column(batch, 1, NULL, &labels);
        printf("%zu images in %zu bytes, the first one of class %lld\n", shf_batch_row_count(batch), images.size,
               (long long)*(const int64_t *)labels.data);
        shf_batch_unref(batch);
    }
    if (rc != SHF_END) fprintf(stderr, "%s\n", error.message);
    shf_stream_close(stream);
    shf_options_free(options);
    return rc != SHF_END;
}
