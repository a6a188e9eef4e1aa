// The classes behind the opaque handles.
#pragma once

#include "api/guard.h"
#include "cache/cached_source.h"
#include "core/fork.h"
#include "core/opening.h"
#include "core/options.h"
#ifdef SHF_HAVE_FEED
#include "feed/message_schemes.h"
#endif
#ifdef SHF_HAVE_CURL
#include "http/http_scheme.h"
#endif
#ifdef SHF_HAVE_STORES
#include "store/settings.h"
#include "store/store_schemes.h"
#endif
#include "stream/stream.h"

#include <shardfeed.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

// Frozen (shardfeed.h): bindings have these layouts compiled in.
static_assert(sizeof(shf_error) == 1024 && offsetof(shf_error, code) == 0 &&
              offsetof(shf_error, os_error) == 4 && offsetof(shf_error, offset) == 8 &&
              offsetof(shf_error, message) == 16);
static_assert(sizeof(shf_bytes) == 2 * sizeof(void*) && offsetof(shf_bytes, data) == 0 &&
              offsetof(shf_bytes, size) == sizeof(void*));
static_assert(sizeof(shf_text) == 3 * sizeof(shf_bytes));

struct shf_options {
    shf::Options values;
    mutable std::string shown;  // what shf_options_get gave last
};

namespace shf {

// What a handle has that belongs to one process, and serves one thread at a time.
struct Exclusive {
    uint64_t generation = fork_generation();
    std::atomic<bool> busy{false};  // a call is inside

    [[nodiscard]] bool forked() const { return generation != fork_generation(); }
};

// Marks a handle as in use for the time of a call. Throws Error(USAGE, FORKED); `noun` says what it
// is, "stream".
class ExclusiveCall {
  public:
    ExclusiveCall(Exclusive* handle, const char* noun) : handle_(handle) {
        const auto refuse = [noun](int32_t code, const char* before, const char* after,
                                   const std::string& help) {
            throw Error(code, std::string(before) + noun + after, help);
        };
        if (!handle) refuse(SHF_E_USAGE, "the ", " is NULL", {});
        if (handle->forked())
            refuse(SHF_E_FORKED, "this ", " was opened by the parent process",
                   std::string("open a ") + noun + " in the process that reads it");
        if (handle->busy.exchange(true, std::memory_order_acquire))
            refuse(SHF_E_USAGE, "another thread is inside a call on this ", "",
                   std::string("give every thread a ") + noun + " of its own, or take turns");
    }
    ~ExclusiveCall() { handle_->busy.store(false, std::memory_order_release); }
    ExclusiveCall(const ExclusiveCall&) = delete;
    ExclusiveCall& operator=(const ExclusiveCall&) = delete;

  private:
    Exclusive* handle_;
};

}  // namespace shf

struct shf_stream : shf::Exclusive {
    std::unique_ptr<shf::Stream> stream;
};

namespace shf {

class StreamEntry : ExclusiveCall {
  public:
    explicit StreamEntry(shf_stream* stream) : ExclusiveCall(stream, "stream") {}
};

// Every call that opens something begins here.
inline Options values_of(const shf_options* options) {
    add_cache();
#ifdef SHF_HAVE_CURL
    add_http_schemes();
#endif
#ifdef SHF_HAVE_FEED
    add_message_schemes();
#endif
#ifdef SHF_HAVE_STORES
    read_environment();
    add_store_schemes();
#endif
    return options ? options->values : Options();
}

// Throws Error(USAGE) for NULL pointers.
inline std::span<const char* const> checked_urls(const char* const* urls, size_t count) {
    if (!urls && count > 0) throw Error(SHF_E_USAGE, "urls is NULL");
    for (size_t i = 0; i < count; ++i)
        if (!urls[i]) throw Error(SHF_E_USAGE, "urls[" + std::to_string(i) + "] is NULL");
    return {urls, count};
}

// A name as callers give it, whose size may be SHF_STRLEN.
inline std::string_view name_of(const char* name, size_t size) {
    return size == SHF_STRLEN && name ? std::string_view(name) : std::string_view(name, size);
}

// A public sample or block is the internal one.
inline const Sample* sample_of(const shf_sample* sample) {
    return reinterpret_cast<const Sample*>(sample);
}
inline shf_sample* handle_of(Sample* sample) {
    return reinterpret_cast<shf_sample*>(sample);
}
inline Block* block_of(shf_block* block) {
    return reinterpret_cast<Block*>(block);
}
inline const Block* block_of(const shf_block* block) {
    return reinterpret_cast<const Block*>(block);
}

inline Batch* batch_of(shf_batch* batch) {
    return reinterpret_cast<Batch*>(batch);
}
inline const Batch* batch_of(const shf_batch* batch) {
    return reinterpret_cast<const Batch*>(batch);
}
inline shf_batch* handle_of(Batch* batch) {
    return reinterpret_cast<shf_batch*>(batch);
}

inline shf_bytes borrowed(std::string_view text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace shf
