// shf_cache_*.
#include "api/handles.h"
#include "cache/cache_catalogue.h"

#include <string>
#include <utility>
#include <vector>

using shf::Error;
using shf::guard;

struct shf_cache_report {
    std::vector<shf::CacheRow> rows;
};

namespace {

using Action = std::vector<shf::CacheRow> (*)(const shf::Options&, const shf::CacheChoice&);

int32_t report(Action action, shf_cache_report** out, const char* const* urls, size_t url_count,
               uint64_t older_than, const shf_options* options, shf_error* error) {
    if (out) *out = nullptr;
    return guard(error, [&] {
        if (!out) throw Error(SHF_E_USAGE, "shf_cache: out is NULL");
        constexpr uint64_t second = 1000000000;
        if (older_than > UINT64_MAX / second)
            throw Error(SHF_E_USAGE, "an age of " + std::to_string(older_than) + " seconds");
        const shf::Options values = shf::values_of(options);
        const shf::Opening opening(values, shf::Opens::other);
        shf::CacheChoice choice;
        for (const char* url : shf::checked_urls(urls, url_count)) choice.urls.emplace_back(url);
        choice.older_than_ns = older_than * second;
        auto made = std::make_unique<shf_cache_report>();
        made->rows = action(values, choice);
        *out = made.release();
        return SHF_OK;
    });
}

shf_bytes bytes(const std::string& text) {
    return {reinterpret_cast<const uint8_t*>(text.c_str()), text.size()};
}

}  // namespace

extern "C" {

int32_t shf_cache_list(shf_cache_report** out, const char* const* urls, size_t url_count,
                       uint64_t older_than, const shf_options* options, shf_error* error) {
    return report(shf::list_cache, out, urls, url_count, older_than, options, error);
}

int32_t shf_cache_verify(shf_cache_report** out, const char* const* urls, size_t url_count,
                         uint64_t older_than, const shf_options* options, shf_error* error) {
    return report(shf::verify_cache, out, urls, url_count, older_than, options, error);
}

int32_t shf_cache_clear(shf_cache_report** out, const char* const* urls, size_t url_count,
                        uint64_t older_than, const shf_options* options, shf_error* error) {
    return report(shf::clear_cache, out, urls, url_count, older_than, options, error);
}

void shf_cache_report_free(shf_cache_report* report) {
    delete report;
}

size_t shf_cache_count(const shf_cache_report* report) {
    return report ? report->rows.size() : 0;
}

int32_t shf_cache_text(const shf_cache_report* report, size_t number, int32_t what,
                       shf_bytes* out) {
    if (out) *out = {nullptr, 0};
    if (!report || !out || number >= report->rows.size()) return SHF_E_NOT_FOUND;
    if (what != SHF_CACHE_URL && what != SHF_CACHE_VERSION) return SHF_E_NOT_FOUND;
    const shf::CacheRow& row = report->rows[number];
    *out = bytes(what == SHF_CACHE_URL ? row.url : row.version);
    return SHF_OK;
}

uint64_t shf_cache_number(const shf_cache_report* report, size_t number, int32_t what) {
    if (!report || number >= report->rows.size()) return UINT64_MAX;
    const shf::CacheRow& row = report->rows[number];
    switch (what) {
        case SHF_CACHE_SIZE: return row.size;
        case SHF_CACHE_DATA: return row.data;
        case SHF_CACHE_DISK: return row.disk;
        case SHF_CACHE_AGE: return row.age_ns;
        case SHF_CACHE_FAULTS: return row.faults;
        default: return UINT64_MAX;
    }
}
}
