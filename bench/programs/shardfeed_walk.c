/* shardfeed_walk MODE [NAME=VALUE...] -- URL...
 *
 * Modes: next     shf_stream_next, one sample a call
 *        block    shf_stream_next_block, then each sample of the block as with `next`
 *        every, every-block  the same two, and every byte of every field is added up
 *        columns  shf_stream_next_block, then the block's flat tables, as a binding would
 *        plan     opens the stream and asks for one sample; for lists of shards that do not exist.
 *                 The IO error that this gives is the expected end: it shows that the epoch was
 *                 planned and a shard was chosen. `first_seconds` is the time until then.
 * NAME=VALUE are options of the stream. On an error the message goes to stderr and the code's name
 * is the last word of the line, so that a caller may expect one. */
#define _POSIX_C_SOURCE 200809L

#include "measure.h"
#include "stream_options.h"

/* Whether every byte is added up. */
static int every;

static void take(shf_sample* sample, struct measure* m) {
    shf_bytes data;
    const size_t count = shf_sample_field_count(sample);
    for (size_t i = 0; i < count; i++) {
        if (shf_sample_field(sample, i, NULL, &data) != SHF_OK) continue;
        m->checksum += touch(data.data, data.size);
        if (every) m->everything += touch_all(data.data, data.size);
        m->bytes += data.size;
    }
    m->members += count;
    m->samples++;
}

static int32_t walk_samples(shf_stream* stream, struct measure* m, shf_error* error) {
    shf_sample* sample;
    int32_t rc;
    while ((rc = shf_stream_next(stream, &sample, error)) == SHF_OK) {
        if (m->samples == 0) measure_first(m);
        take(sample, m);
        shf_sample_unref(sample);
    }
    return rc;
}

static int32_t walk_blocks(shf_stream* stream, struct measure* m, shf_error* error) {
    shf_block* block;
    int32_t rc;
    while ((rc = shf_stream_next_block(stream, 0, &block, error)) == SHF_OK) {
        if (m->samples == 0) measure_first(m);
        const size_t count = shf_block_sample_count(block);
        for (size_t i = 0; i < count; i++) take(shf_block_sample(block, i), m);
        shf_block_unref(block);
    }
    return rc;
}

static int32_t walk_columns(shf_stream* stream, struct measure* m, shf_error* error) {
    shf_block* block;
    int32_t rc;
    while ((rc = shf_stream_next_block(stream, 0, &block, error)) == SHF_OK) {
        if (m->samples == 0) measure_first(m);
        const uint64_t* columns[SHF_BLOCK_COLUMNS];
        size_t counts[SHF_BLOCK_COLUMNS];
        shf_block_columns(block, SHF_BLOCK_COLUMNS, columns, counts);
        const uint64_t* buffers = columns[SHF_BLOCK_BUFFER];
        const uint64_t* starts = columns[SHF_BLOCK_START];
        const uint64_t* stops = columns[SHF_BLOCK_STOP];
        const size_t fields = counts[SHF_BLOCK_START];
        shf_bytes buffer = {NULL, 0};
        uint64_t current = UINT64_MAX;
        for (size_t i = 0; i < fields; i++) {
            if (buffers[i] != current) {
                current = buffers[i];
                if (shf_block_buffer(block, (size_t)current, &buffer) != SHF_OK) continue;
            }
            const size_t size = (size_t)(stops[i] - starts[i]);
            m->checksum += touch(buffer.data + starts[i], size);
            m->bytes += size;
        }
        m->members += fields;
        m->samples += shf_block_sample_count(block);
        shf_block_unref(block);
    }
    return rc;
}

static int32_t plan(shf_stream* stream, struct measure* m, shf_error* error) {
    shf_sample* sample = NULL;
    const int32_t rc = shf_stream_next(stream, &sample, error);
    measure_first(m);
    shf_sample_unref(sample);
    return rc == SHF_E_IO ? SHF_END : rc;
}

int main(int argc, char** argv) {
    static const struct {
        const char* name;
        int32_t (*walk)(shf_stream*, struct measure*, shf_error*);
    } modes[] = {{"next", walk_samples},       {"every", walk_samples},   {"block", walk_blocks},
                 {"every-block", walk_blocks}, {"columns", walk_columns}, {"plan", plan}};
    size_t mode = 0;
    const size_t mode_count = sizeof modes / sizeof modes[0];
    while (argc > 1 && mode < mode_count && strcmp(argv[1], modes[mode].name) != 0) mode++;
    const int urls = first_url(argc, argv, 2);
    if (mode == mode_count || urls == 0) {
        fprintf(stderr,
                "usage: shardfeed_walk next|every|block|every-block|columns|plan [NAME=VALUE...] --"
                " URL...\n");
        return 2;
    }

    every = strncmp(argv[1], "every", 5) == 0;
    shf_error error = {0, 0, 0, ""};
    struct measure m;
    measure_start(&m);
    shf_stream* stream = NULL;
    int32_t rc = open_stream(&stream, argc, argv, 2, urls, &error);
    if (rc != SHF_OK) return fail(rc, &error);
    rc = modes[mode].walk(stream, &m, &error);
    m.engine_peak = shf_stream_stat(stream, SHF_STAT_MEMORY_PEAK);
    shf_stream_close(stream);
    measure_stop(&m);
    if (rc != SHF_END) return fail(rc, &error);
    measure_print(&m, argv[1]);
    return 0;
}
