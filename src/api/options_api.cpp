// shf_options_*, shf_option_describe, shf_expand_urls.
#include "api/handles.h"
#include "batch/tokens.h"
#include "io/callback_source.h"
#include "io/urls.h"

#include <new>

using shf::Error;
using shf::guard;

extern "C" {

shf_options* shf_options_new(void) {
    try {
        return new shf_options;
    } catch (...) {
        return nullptr;
    }
}

void shf_options_free(shf_options* options) {
    delete options;
}

int32_t shf_options_set(shf_options* options, const char* name, const char* value,
                        shf_error* error) {
    return guard(error, [&] {
        if (!options || !name || !value)
            throw Error(SHF_E_USAGE, "shf_options_set: a NULL argument");
        options->values.set(name, value);
        return SHF_OK;
    });
}

int32_t shf_options_set_all(shf_options* options, const char* text, shf_error* error) {
    return guard(error, [&] {
        if (!options || !text) throw Error(SHF_E_USAGE, "shf_options_set_all: a NULL argument");
        options->values.set_all(text);
        return SHF_OK;
    });
}

int32_t shf_options_get(const shf_options* options, const char* name, shf_bytes* out,
                        shf_error* error) {
    if (out) *out = shf_bytes{nullptr, 0};
    return guard(error, [&] {
        if (!options || !name || !out) throw Error(SHF_E_USAGE, "shf_options_get: a NULL argument");
        options->shown = options->values.get(name);
        *out = shf::borrowed(options->shown);
        return SHF_OK;
    });
}

const char* shf_option_describe(size_t index, int32_t what) {
    return shf::describe_option(index, what);
}

void shf_options_set_log(shf_options* options, int32_t level, shf_log_fn log, void* ctx) {
    if (!options) return;
    options->values.log_level = level;
    options->values.log = log;
    options->values.log_ctx = ctx;
}

void shf_options_set_on_skip(shf_options* options, shf_skip_fn on_skip, void* ctx) {
    if (!options) return;
    options->values.on_skip = on_skip;
    options->values.on_skip_ctx = ctx;
}

void shf_options_set_allocator(shf_options* options, shf_alloc_fn alloc, shf_free_fn release,
                               void* ctx) {
    if (!options) return;
    const bool both = alloc && release;
    options->values.alloc = both ? alloc : nullptr;
    options->values.release = both ? release : nullptr;
    options->values.alloc_ctx = ctx;
}

void shf_options_set_interrupt(shf_options* options, shf_interrupt_fn interrupt, void* ctx) {
    if (!options) return;
    options->values.interrupt = interrupt;
    options->values.interrupt_ctx = ctx;
}

void shf_options_set_shard_name(shf_options* options, shf_name_fn name, void* ctx) {
    if (!options) return;
    options->values.name_shard = name;
    options->values.name_shard_ctx = ctx;
}

int32_t shf_options_set_source(shf_options* options, const char* scheme, const shf_source* source,
                               void* ctx, shf_error* error) {
    return guard(error, [&] {
        if (!options || !scheme)
            throw Error(SHF_E_USAGE, "shf_options_set_source: a NULL argument");
        shf::set_source(options->values, scheme, source, ctx);
        return SHF_OK;
    });
}

int32_t shf_options_set_tokenizer(shf_options* options, const shf_tokenizer* tokenizer, void* ctx,
                                  shf_error* error) {
    return guard(error, [&] {
        if (!options) throw Error(SHF_E_USAGE, "shf_options_set_tokenizer: a NULL argument");
        shf::set_tokenizer(options->values, tokenizer, ctx);
        return SHF_OK;
    });
}

int32_t shf_tokens_add(shf_tokens* tokens, const int32_t* ids, const uint64_t* counts, size_t texts,
                       shf_error* error) {
    return guard(error, [&] {
        if (!tokens) throw Error(SHF_E_USAGE, "shf_tokens_add: a NULL argument");
        shf::sink_of(tokens)->add(ids, counts, texts);
        return SHF_OK;
    });
}

int32_t shf_expand_urls(const char* const* urls, size_t url_count, const shf_options* options,
                        shf_url_fn each, void* ctx, shf_error* error) {
    return guard(error, [&] {
        if (!each) throw Error(SHF_E_USAGE, "shf_expand_urls: each is NULL");
        const shf::Options values = shf::values_of(options);
        const shf::Opening opening(values, shf::Opens::other);
        const shf::ShardList list(shf::checked_urls(urls, url_count), values);
        for (uint64_t i = 0; i < list.size(); ++i) {
            const std::string url = list.at(i);
            if (each(ctx, url.c_str(), url.size()) != 0)
                throw Error(SHF_E_CANCELLED, "the callback stopped the expansion");
        }
        return SHF_OK;
    });
}
}
