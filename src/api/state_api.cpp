// shf_stream_save, shf_stream_restore, shf_state_*.
#include "api/handles.h"
#include "order/state_encoding.h"

#include <vector>

using shf::Error;
using shf::guard;
using shf::StreamEntry;

struct shf_state {
    std::vector<uint8_t> bytes;
};

namespace {

std::span<const uint8_t> checked(const uint8_t* data, size_t size) {
    if (!data && size > 0) throw Error(SHF_E_USAGE, "data is NULL");
    return {data, size};
}

void deliver(shf_state** out, const shf::StreamState& state) {
    *out = std::make_unique<shf_state>(shf_state{shf::encode(state)}).release();
}

}  // namespace

extern "C" {

int32_t shf_stream_save(shf_stream* stream, size_t unread, shf_state** out, shf_error* error) {
    if (out) *out = nullptr;
    return guard(error, [&] {
        if (!out) throw Error(SHF_E_USAGE, "shf_stream_save: out is NULL");
        const StreamEntry entry(stream);
        deliver(out, stream->stream->save(unread));
        return SHF_OK;
    });
}

int32_t shf_stream_restore(shf_stream* stream, const uint8_t* data, size_t size, shf_error* error) {
    return guard(error, [&] {
        const StreamEntry entry(stream);
        stream->stream->restore(shf::decode_state(checked(data, size)));
        return SHF_OK;
    });
}

int32_t shf_state_merge(const shf_bytes* states, size_t count, shf_state** out, shf_error* error) {
    if (out) *out = nullptr;
    return guard(error, [&] {
        if (!out || (!states && count > 0))
            throw Error(SHF_E_USAGE, "shf_state_merge: out or states is NULL");
        std::vector<shf::StreamState> parts;
        for (size_t i = 0; i < count; ++i)
            parts.push_back(shf::decode_state(checked(states[i].data, states[i].size)));
        deliver(out, shf::merge(parts));
        return SHF_OK;
    });
}

void shf_state_bytes(const shf_state* state, shf_bytes* out) {
    if (out)
        *out = state ? shf_bytes{state->bytes.data(), state->bytes.size()} : shf_bytes{nullptr, 0};
}

void shf_state_free(shf_state* state) {
    delete state;
}
}
