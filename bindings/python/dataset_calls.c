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

/* Bytes of a sample: of its fields, and of what the library and malloc need for it. */
static uint64_t size_of(const shf_sample *sample) {
    const size_t count = shf_sample_field_count(sample);
    uint64_t size = 512;
    size_t i;
    for (i = 0; i < count; i++) {
        shf_bytes name, data;
        shf_sample_field(sample, i, &name, &data);
        size += data.size;
    }
    return size;
}

static void release(python_samples *held, size_t place) {
    if (!held->samples[place]) return;
    held->bytes -= size_of(held->samples[place]);
    shf_sample_unref(held->samples[place]);
    held->samples[place] = NULL;
}

python_samples *python_new_samples(size_t count) {
    python_samples *held = malloc(sizeof *held);
    if (!held) return NULL;
    held->count = count;
    held->bytes = 0;
    held->samples = calloc(count ? count : 1, sizeof *held->samples);
    if (held->samples) return held;
    free(held);
    return NULL;
}

void python_free_samples(python_samples *held) {
    if (!held) return;
    python_drop_samples(held, 0);
    free(held->samples);
    free(held);
}

int32_t python_read_samples(shf_dataset **holder, const uint64_t *numbers, const uint64_t *places,
                            size_t count, python_samples *held, shf_error *error) {
    shf_sample **samples = get_many(*holder, numbers, count, error);
    size_t i;
    if (!samples) return error->code;
    for (i = 0; i < count; i++) {
        held->samples[places[i]] = samples[i];
        held->bytes += size_of(samples[i]);
    }
    free(samples);
    return SHF_OK;
}

void python_drop_samples(python_samples *held, size_t place) {
    for (; place < held->count; place++) release(held, place);
}

void python_take_sample(python_samples *held, size_t place, shf_sample **holder) {
    held->bytes -= size_of(held->samples[place]);
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
