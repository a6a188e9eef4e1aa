// shf_stream_*, shf_stat_describe.
#include "api/handles.h"
#include "core/stats.h"
#ifdef SHF_HAVE_FEED
#include "feed/fed_stream.h"
#include "feed/feed_options.h"
#endif

#include <algorithm>
#include <deque>
#include <vector>

using shf::Error;
using shf::guard;
using shf::StreamEntry;

namespace {

template <typename Handle>
int32_t deliver(Handle** out, Handle* handle) {
    *out = handle;
    return handle ? SHF_OK : SHF_END;
}

// Of shards, or of servers that read them.
std::unique_ptr<shf::Stream> open_stream(std::span<const char* const> urls,
                                         const shf::Options& options) {
#ifdef SHF_HAVE_FEED
    if (shf::is_feed(urls)) return shf::open_fed_stream(urls, options);
#endif
    return std::make_unique<shf::Stream>(urls, options);
}

// The stream of a mix, which has taken over what the parts had.
std::unique_ptr<shf::Stream> mix_of(std::span<shf_stream* const> parts,
                                    std::span<const double> weights, const shf_options* options) {
    std::vector<shf_stream*> sorted(parts.begin(), parts.end());
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
        throw Error(SHF_E_USAGE, "a stream is two parts of the mix", "open it once for each part");
    std::deque<StreamEntry> entries;
    std::vector<shf::Stream*> streams;
    for (shf_stream* part : parts) {
        entries.emplace_back(part);
        streams.push_back(part->stream.get());
    }
    return std::make_unique<shf::Stream>(streams, weights, shf::values_of(options));
}

}  // namespace

extern "C" {

int32_t shf_stream_open(shf_stream** out, const char* const* urls, size_t url_count,
                        const shf_options* options, shf_error* error) {
    if (out) *out = nullptr;
    return guard(error, [&] {
        if (!out) throw Error(SHF_E_USAGE, "shf_stream_open: out is NULL");
        const shf::Options values = shf::values_of(options);
        values.require_consumer();
        auto stream = std::make_unique<shf_stream>();
        const shf::Opening opening(values, shf::Opens::stream);
        const auto checked = shf::checked_urls(urls, url_count);
        stream->stream = open_stream(checked, values);
        *out = stream.release();
        return SHF_OK;
    });
}

int32_t shf_stream_mix(shf_stream** out, shf_stream* const* parts, const double* weights,
                       size_t count, const shf_options* options, shf_error* error) {
    if (out) *out = nullptr;
    return guard(error, [&] {
        if (!out || (!parts && count > 0))
            throw Error(SHF_E_USAGE, "shf_stream_mix: out or parts is NULL");
        const std::span all(parts, count);
        auto stream = std::make_unique<shf_stream>();
        stream->stream = mix_of(all, std::span(weights, weights ? count : 0), options);
        for (shf_stream* part : all) delete part;
        *out = stream.release();
        return SHF_OK;
    });
}

int32_t shf_stream_next(shf_stream* stream, shf_sample** out, shf_error* error) {
    if (out) *out = nullptr;
    return guard(error, [&]() -> int32_t {
        if (!out) throw Error(SHF_E_USAGE, "shf_stream_next: out is NULL");
        const StreamEntry entry(stream);
        return deliver(out, shf::handle_of(stream->stream->next()));
    });
}

int32_t shf_stream_next_block(shf_stream* stream, size_t max_samples, shf_block** out,
                              shf_error* error) {
    if (out) *out = nullptr;
    return guard(error, [&]() -> int32_t {
        if (!out) throw Error(SHF_E_USAGE, "shf_stream_next_block: out is NULL");
        const StreamEntry entry(stream);
        return deliver(
            out, reinterpret_cast<shf_block*>(stream->stream->next_block(max_samples).release()));
    });
}

int32_t shf_stream_next_batch(shf_stream* stream, shf_batch** out, shf_error* error) {
    if (out) *out = nullptr;
    return guard(error, [&]() -> int32_t {
        if (!out) throw Error(SHF_E_USAGE, "shf_stream_next_batch: out is NULL");
        const StreamEntry entry(stream);
        return deliver(out, shf::handle_of(stream->stream->next_batch().release()));
    });
}

uint64_t shf_stream_stat(const shf_stream* stream, int32_t stat) {
    if (!stream || !shf::describe_stat(stat, SHF_COUNTER_NAME) || stream->forked())
        return UINT64_MAX;
    return stream->stream->stat(stat);
}

const char* shf_stat_describe(int32_t stat, int32_t what) {
    return shf::describe_stat(stat, what);
}

void shf_stream_cancel(shf_stream* stream) {
    if (stream && !stream->forked()) stream->stream->cancel();
}

void shf_stream_close(shf_stream* stream) {
    if (!stream) return;
    // In a forked child the threads do not exist, and one of them may hold a lock that nobody
    // releases: what they worked with stays as it is, in pages shared with the parent.
    if (stream->forked()) (void)stream->stream.release();
    delete stream;
}
}
