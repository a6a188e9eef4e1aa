/* shardfeed_batches [NAME=VALUE...] -- URL...
 *
 * shf_stream_next_batch until the end. Of each row of each column one byte of each 4 KiB is read;
 * the numbers of the column "cls" are added up as labels, and are not among bytes and checksum. */
#define _POSIX_C_SOURCE 200809L

#include "measure.h"
#include "stream_options.h"

static void take_rows(const shf_array* array, size_t rows, struct measure* m) {
    const uint8_t* data = array->data;
    if (array->offsets == NULL) {
        const size_t row = array->size / rows;
        for (size_t i = 0; i < rows; i++) m->checksum += touch(data + i * row, row);
    } else {
        /* Columns of bytes; an array of rows of unequal shape is not measured. */
        for (size_t i = 0; i < rows; i++) {
            const size_t start = (size_t)array->offsets[i];
            m->checksum += touch(data + start, (size_t)array->offsets[i + 1] - start);
        }
    }
    m->bytes += array->size;
}

static void take(shf_batch* batch, struct measure* m) {
    const size_t rows = shf_batch_row_count(batch);
    const size_t columns = shf_batch_column_count(batch);
    for (size_t i = 0; i < columns; i++) {
        shf_bytes name;
        shf_array array;
        if (shf_batch_column(batch, i, &name, &array) != SHF_OK) continue;
        if (name.size > 2 && memcmp(name.data, "__", 2) == 0) continue;
        if (name.size == 3 && memcmp(name.data, "cls", 3) == 0) {
            const int64_t* numbers = array.data;
            for (size_t row = 0; row < rows; row++) m->labels += (uint64_t)numbers[row];
        } else {
            take_rows(&array, rows, m);
        }
    }
    m->samples += rows;
    m->batches++;
}

int main(int argc, char** argv) {
    const int urls = first_url(argc, argv, 1);
    if (urls == 0) {
        fprintf(stderr, "usage: shardfeed_batches [NAME=VALUE...] -- URL...\n");
        return 2;
    }
    shf_error error = {0, 0, 0, ""};
    struct measure m;
    measure_start(&m);
    shf_stream* stream = NULL;
    int32_t rc = open_stream(&stream, argc, argv, 1, urls, &error);
    if (rc != SHF_OK) return fail(rc, &error);
    shf_batch* batch;
    while ((rc = shf_stream_next_batch(stream, &batch, &error)) == SHF_OK) {
        if (m.samples == 0) measure_first(&m);
        take(batch, &m);
        shf_batch_unref(batch);
    }
    m.engine_peak = shf_stream_stat(stream, SHF_STAT_MEMORY_PEAK);
    shf_stream_close(stream);
    measure_stop(&m);
    if (rc != SHF_END) return fail(rc, &error);
    measure_print(&m, "shardfeed batches");
    return 0;
}
