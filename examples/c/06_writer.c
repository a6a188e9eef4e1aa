/* Writes shards of small samples, and says what was published: 06_writer DIRECTORY
 *
 *     cc 06_writer.c $(pkg-config --cflags --libs shardfeed) -o 06_writer
 */
#include <shardfeed.h>
#include <stdio.h>

int main(int argc, char **argv) {
    char pattern[4096], key[32], cls[32];
    shf_error error = {0};
    shf_writer *writer = NULL;
    shf_options *options = shf_options_new();
    int32_t rc = shf_options_set_all(options, "max_samples=100,write_index=true", &error);
    snprintf(pattern, sizeof pattern, "%s/train-%%04d.tar", argc == 2 ? argv[1] : ".");
    if (rc == SHF_OK) rc = shf_writer_open(&writer, pattern, options, &error);
    for (int i = 0; rc == SHF_OK && i < 250; ++i) {
        snprintf(key, sizeof key, "%06d", i);
        int size = snprintf(cls, sizeof cls, "%d", i % 10);
        rc = shf_writer_begin(writer, key, SHF_STRLEN, &error);
        if (rc == SHF_OK)
            rc = shf_writer_field(writer, "cls", SHF_STRLEN, cls, (size_t)size, &error);
        if (rc == SHF_OK) rc = shf_writer_end(writer, &error);
    }
    if (rc == SHF_OK) rc = shf_writer_finish(writer, &error); /* nothing is published without it */
    for (uint64_t i = 0; i < shf_writer_shards(writer); ++i) {
        shf_bytes url;
        shf_writer_shard_text(writer, i, SHF_SHARD_URL, &url);
        printf("%.*s: %llu samples\n", (int)url.size, (const char *)url.data,
               (unsigned long long)shf_writer_shard_info(writer, i, SHF_SHARD_SAMPLES));
    }
    if (rc != SHF_OK) fprintf(stderr, "%s\n", error.message);
    shf_writer_close(writer);
    shf_options_free(options);
    return rc != SHF_OK;
}
