// shf_dataset_*.
#include "api/handles.h"
#include "dataset/dataset.h"

#include <string>

using shf::Error;
using shf::guard_without_skips;

struct shf_dataset {
    shf::Dataset dataset;
};

namespace {

// Throws Error(USAGE).
const shf::Dataset& checked(const shf_dataset* dataset) {
    if (!dataset) throw Error(SHF_E_USAGE, "the dataset is NULL");
    return dataset->dataset;
}

const shf::Dataset& checked(const shf_dataset* dataset, uint64_t number) {
    const shf::Dataset& samples = checked(dataset);
    if (number >= samples.count())
        throw Error(SHF_E_USAGE, "number " + std::to_string(number) + " of a dataset with " +
                                     shf::plural(samples.count(), "sample"));
    return samples;
}

}  // namespace

extern "C" {

int32_t shf_dataset_open(shf_dataset** out, const char* const* urls, size_t url_count,
                         const shf_options* options, shf_error* error) {
    if (out) *out = nullptr;
    return guard_without_skips(error, [&] {
        if (!out) throw Error(SHF_E_USAGE, "shf_dataset_open: out is NULL");
        const shf::Options values = shf::values_of(options);
        const shf::Opening opening(values, shf::Opens::other);
        *out = new shf_dataset{{shf::checked_urls(urls, url_count), values}};
        return SHF_OK;
    });
}

void shf_dataset_close(shf_dataset* dataset) {
    delete dataset;
}

uint64_t shf_dataset_sample_count(const shf_dataset* dataset) {
    return dataset ? dataset->dataset.count() : 0;
}

int32_t shf_dataset_get(const shf_dataset* dataset, uint64_t number, shf_sample** out,
                        shf_error* error) {
    if (out) *out = nullptr;
    return guard_without_skips(error, [&] {
        if (!out) throw Error(SHF_E_USAGE, "shf_dataset_get: out is NULL");
        *out = shf::handle_of(checked(dataset, number).get(static_cast<size_t>(number)));
        return SHF_OK;
    });
}

int32_t shf_dataset_get_many(const shf_dataset* dataset, const uint64_t* numbers, size_t count,
                             shf_sample** out, shf_error* error) {
    for (size_t i = 0; out && i < count; ++i) out[i] = nullptr;
    return guard_without_skips(error, [&] {
        if (count > 0 && (!numbers || !out))
            throw Error(SHF_E_USAGE, "shf_dataset_get_many: numbers or out is NULL");
        for (size_t i = 0; i < count; ++i) (void)checked(dataset, numbers[i]);
        // A public sample is the internal one.
        checked(dataset).get_many({numbers, count}, {reinterpret_cast<shf::Sample**>(out), count});
        return SHF_OK;
    });
}

int32_t shf_dataset_get_batch(const shf_dataset* dataset, const uint64_t* numbers, size_t count,
                              const shf_options* options, shf_batch** out, shf_error* error) {
    if (out) *out = nullptr;
    return guard_without_skips(error, [&] {
        if (!out || !numbers || count == 0)
            throw Error(SHF_E_USAGE, "shf_dataset_get_batch: no numbers, or out is NULL");
        for (size_t i = 0; i < count; ++i) (void)checked(dataset, numbers[i]);
        const shf::Options values = shf::values_of(options);
        *out = shf::handle_of(
            checked(dataset).get_batch({numbers, count}, options ? &values : nullptr).release());
        return SHF_OK;
    });
}

int32_t shf_dataset_find(const shf_dataset* dataset, const char* key, size_t key_size,
                         uint64_t* number, shf_error* error) {
    if (number) *number = 0;
    return guard_without_skips(error, [&] {
        if (!number || (!key && key_size > 0))
            throw Error(SHF_E_USAGE, "shf_dataset_find: number or key is NULL");
        *number = checked(dataset).find(shf::name_of(key, key_size));
        return SHF_OK;
    });
}

int32_t shf_dataset_shard(const shf_dataset* dataset, uint64_t number, uint64_t* shard,
                          uint64_t* first) {
    if (shard) *shard = 0;
    if (first) *first = 0;
    if (!dataset) return SHF_E_USAGE;
    if (number >= dataset->dataset.count()) return SHF_E_NOT_FOUND;
    const auto place = dataset->dataset.place(static_cast<size_t>(number));
    if (shard) *shard = place.shard;
    if (first) *first = place.first;
    return SHF_OK;
}
}
