#include "dataset_calls.h"

#include <stdlib.h>
#include <string.h>

/* The samples in an array that is to be freed; NULL after an error. */
static shf_sample **get_many(shf_dataset *dataset, const uint64_t *numbers, size_t count,
                             shf_error *error) {
    shf_sample **samples = malloc((count ? count : 1) * sizeof *samples);
    if (!samples) {
        memset(error, 0, sizeof *error);
        error->code = SHF_E_NOMEM;
        error->offset = UINT64_MAX;
        strcpy(error->message, "no memory for the list of samples");
        return NULL;
    }
    if (shf_dataset_get_many(dataset, numbers, count, samples, error) == SHF_OK) return samples;
    free(samples);
    return NULL;
}

int32_t python_get_many(shf_dataset **holder, const uint64_t *numbers, size_t count,
                        shf_sample ***holders, shf_error *error) {
    shf_sample **samples = get_many(*holder, numbers, count, error);
    size_t i;
    if (!samples) return error->code;
    for (i = 0; i < count; i++) *holders[i] = samples[i];
    free(samples);
    return SHF_OK;
}

int32_t python_describe(shf_sample **holder, size_t fields, size_t bytes, python_sample *out) {
    const shf_sample *sample = *holder;
    const size_t count = shf_sample_field_count(sample);
    uintptr_t first = UINTPTR_MAX, last = 0;
    size_t i, names_size = 0;
    for (i = 0; i < count; i++) {
        shf_bytes name, data;
        const uintptr_t at = (shf_sample_field(sample, i, &name, &data), (uintptr_t)data.data);
        if (data.size > 0 && at < first) first = at;
        if (data.size > 0 && at + data.size > last) last = at + data.size;
        if (i < fields) {
            out->start[i] = data.size > 0 ? at : 0; /* made relative below */
            out->stop[i] = data.size > 0 ? at + data.size : 0;
        }
        if (names_size + name.size + 1 <= bytes) {
            memcpy(out->names + names_size, name.data, name.size);
            out->names[names_size + name.size] = '/';
        }
        names_size += name.size + 1;
    }
    if (last == 0) first = 0;
    for (i = 0; i < count && i < fields; i++) {
        if (out->stop[i] == 0) continue;
        out->start[i] -= first;
        out->stop[i] -= first;
    }
    out->base = (const uint8_t *)first;
    out->span = last - first;
    out->count = count;
    out->names_size = names_size;
    return count <= fields && names_size <= bytes;
}

/* Samples that one call of the library reads. What they take is known when they are read, so there
 * is one for each MiB of memory, and there are fewer when the last ones were large. Requests to a
 * store wait for the slowest one of a call: with 32 they took a tenth longer than with 64. */
enum { MOST_AT_ONCE = 64, FEW_AT_ONCE = 8 };

/* What lies between two samples of one piece of memory is less; see pieces_of() in tar_shard.cpp. */
#define MOST_BETWEEN (24u << 10)

/* Bytes that a sample takes: from its first field to its last one with what is between them, the
 * header and the padding around it, the tables, and what the library and malloc need for it. *end:
 * where the one before it in the file has its end in memory; becomes that of this one. */
static uint64_t size_of(const shf_sample *sample, uintptr_t *end) {
    const size_t count = shf_sample_field_count(sample);
    uintptr_t first = UINTPTR_MAX, last = 0;
    uint64_t size = 1280 + 32 * (uint64_t)count;
    size_t i;
    for (i = 0; i < count; i++) {
        shf_bytes name, data;
        const uintptr_t at = (shf_sample_field(sample, i, &name, &data), (uintptr_t)data.data);
        if (data.size > 0 && at < first) first = at;
        if (data.size > 0 && at + data.size > last) last = at + data.size;
    }
    if (last == 0) return size;
    if (*end > 0 && first > *end && first - *end <= MOST_BETWEEN) size += first - *end;
    *end = last;
    return size + (last - first);
}

static void release(python_samples *held, size_t place) {
    if (!held->samples[place]) return;
    held->bytes -= held->sizes[place];
    shf_sample_unref(held->samples[place]);
    held->samples[place] = NULL;
}

python_samples *python_new_samples(size_t count) {
    python_samples *held = malloc(sizeof *held);
    if (!held) return NULL;
    held->count = count;
    held->bytes = 0;
    held->at_once = 1;
    held->samples = calloc(count ? count : 1, sizeof *held->samples);
    held->sizes = calloc(count ? count : 1, sizeof *held->sizes);
    if (held->samples && held->sizes) return held;
    free(held->samples);
    free(held->sizes);
    free(held);
    return NULL;
}

void python_free_samples(python_samples *held) {
    if (!held) return;
    python_drop_samples(held, 0);
    free(held->samples);
    free(held->sizes);
    free(held);
}

/* How many to read next, when the last `count` took `bytes`. */
static size_t next_count(size_t count, uint64_t bytes, uint64_t budget) {
    const uint64_t fitting = budget / 8 / (bytes / count + 1);
    uint64_t most = budget >> 20;
    if (most < FEW_AT_ONCE) most = FEW_AT_ONCE;
    if (most > MOST_AT_ONCE) most = MOST_AT_ONCE;
    if (most > 2 * (uint64_t)count) most = 2 * (uint64_t)count;
    if (most > fitting) most = fitting;
    return most > 0 ? (size_t)most : 1;
}

int32_t python_read_samples(shf_dataset **holder, const uint64_t *numbers, const uint64_t *places,
                            size_t count, uint64_t budget, python_samples *held, size_t *done,
                            shf_error *error) {
    for (*done = 0; *done < count && held->bytes < budget;) {
        const size_t some = held->at_once < count - *done ? held->at_once : count - *done;
        shf_sample **samples = get_many(*holder, numbers + *done, some, error);
        uint64_t read = 0;
        uintptr_t end = 0;
        size_t i;
        if (!samples) return error->code;
        for (i = 0; i < some; i++) {
            const size_t place = (size_t)places[*done + i];
            release(held, place);
            held->samples[place] = samples[i];
            held->sizes[place] = size_of(samples[i], &end);
            held->bytes += held->sizes[place];
            read += held->sizes[place];
        }
        free(samples);
        *done += some;
        held->at_once = next_count(some, read, budget);
    }
    return SHF_OK;
}

void python_drop_samples(python_samples *held, size_t place) {
    for (; place < held->count; place++) release(held, place);
}

void python_take_sample(python_samples *held, size_t place, shf_sample **holder) {
    held->bytes -= held->sizes[place];
    *holder = held->samples[place];
    held->samples[place] = NULL;
}

int32_t python_write_samples(shf_writer **holder, python_samples *held, size_t *place, size_t stop,
                             shf_error *error) {
    for (; *place < stop; ++*place) {
        const int32_t code = shf_writer_write(*holder, held->samples[*place], error);
        if (code < 0) return code;
        release(held, *place);
    }
    return SHF_OK;
}
