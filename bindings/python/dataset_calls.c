#include "dataset_calls.h"

#include <stdlib.h>
#include <string.h>

int32_t python_get_many(shf_dataset **holder, const uint64_t *numbers, size_t count,
                        shf_sample ***holders, shf_error *error) {
    shf_sample **samples = malloc((count ? count : 1) * sizeof *samples);
    int32_t code;
    size_t i;
    if (!samples) {
        memset(error, 0, sizeof *error);
        error->code = SHF_E_NOMEM;
        error->offset = UINT64_MAX;
        strcpy(error->message, "no memory for the list of samples");
        return SHF_E_NOMEM;
    }
    code = shf_dataset_get_many(*holder, numbers, count, samples, error);
    for (i = 0; code == SHF_OK && i < count; i++) *holders[i] = samples[i];
    free(samples);
    return code;
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
