// shf_index_*.
#include "api/handles.h"
#include "index/index_store.h"
#include "interop/foreign_index.h"
#include "url/in_shard.h"
#include "url/scheme.h"

#include <string>

using shf::Error;
using shf::guard_without_skips;
using shf::IndexFormat;

static_assert(static_cast<int>(IndexFormat::dali_1_0) == SHF_INDEX_DALI_1_0 &&
              static_cast<int>(IndexFormat::dali_1_1) == SHF_INDEX_DALI_1_1 &&
              static_cast<int>(IndexFormat::dali_1_2) == SHF_INDEX_DALI_1_2 &&
              static_cast<int>(IndexFormat::energon) == SHF_INDEX_ENERGON &&
              static_cast<int>(IndexFormat::wids) == SHF_INDEX_WIDS);

namespace {

// Throws Error(USAGE).
IndexFormat checked_format(int32_t format) {
    if (format < SHF_INDEX_DALI_1_0 || format > SHF_INDEX_WIDS)
        throw Error(SHF_E_USAGE, std::to_string(format) + " is no format of an index");
    return static_cast<IndexFormat>(format);
}

std::string checked_path(const char* path) {
    if (!path || *path == '\0') throw Error(SHF_E_USAGE, "the path of the index is NULL or empty");
    return shf::from_home(path);
}

}  // namespace

extern "C" {

int32_t shf_index_build(const char* url, const shf_options* options, shf_error* error) {
    return guard_without_skips(error, [&] {
        if (!url) throw Error(SHF_E_USAGE, "shf_index_build: url is NULL");
        const shf::Options values = shf::values_of(options);
        const shf::Opening opening(values, shf::Opens::other);
        const shf::Cancel never;
        const std::string place = shf::from_home(url);
        shf::in_shard(place, [&] { shf::build_index(place, values, never); });
        return SHF_OK;
    });
}

int32_t shf_index_export(const char* const* urls, size_t url_count, int32_t format,
                         const char* path, const shf_options* options, shf_error* error) {
    return guard_without_skips(error, [&] {
        const shf::Options values = shf::values_of(options);
        const shf::Opening opening(values, shf::Opens::other);
        shf::export_index(shf::checked_urls(urls, url_count), checked_format(format),
                          checked_path(path), values);
        return SHF_OK;
    });
}

int32_t shf_index_import(const char* url, int32_t format, const char* path,
                         const shf_options* options, shf_error* error) {
    return guard_without_skips(error, [&] {
        const IndexFormat checked = checked_format(format);
        if (!url != (checked == IndexFormat::wids))
            throw Error(SHF_E_USAGE, checked == IndexFormat::wids
                                         ? "shf_index_import: an index of wids names its shards"
                                         : "shf_index_import: url is NULL");
        const shf::Options values = shf::values_of(options);
        const shf::Opening opening(values, shf::Opens::other);
        shf::import_index({&url, url ? 1U : 0U}, checked, checked_path(path), values);
        return SHF_OK;
    });
}
}
