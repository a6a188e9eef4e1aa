// A stream that is stopped, saved, and goes on as another one.
#pragma once

#include "batch_client.h"

#include <gtest/gtest.h>
#include <shardfeed.h>

#include <string>
#include <vector>

namespace shf::test {

using State = std::vector<uint8_t>;

inline State bytes_of(shf_state* state) {
    shf_bytes bytes;
    shf_state_bytes(state, &bytes);
    State copy(bytes.data, bytes.data + bytes.size);
    shf_state_free(state);
    return copy;
}

inline State save(Client& client, size_t unread = 0) {
    shf_state* state = nullptr;
    shf_error error = {};
    EXPECT_EQ(shf_stream_save(client.stream, unread, &state, &error), SHF_OK) << error.message;
    return state ? bytes_of(state) : State();
}

inline int32_t restore(Client& client, const State& state) {
    client.code = shf_stream_restore(client.stream, state.data(), state.size(), &client.error);
    return client.code;
}

inline State merge(const std::vector<State>& states) {
    std::vector<shf_bytes> parts;
    for (const State& state : states) parts.push_back({state.data(), state.size()});
    shf_state* merged = nullptr;
    shf_error error = {};
    EXPECT_EQ(shf_state_merge(parts.data(), parts.size(), &merged, &error), SHF_OK)
        << error.message;
    return merged ? bytes_of(merged) : State();
}

// The keys of a block, and the block's end.
inline std::vector<std::string> block_of(Client& client, size_t most) {
    std::vector<std::string> keys;
    shf_block* block = nullptr;
    client.code = shf_stream_next_block(client.stream, most, &block, &client.error);
    if (!block) return keys;
    for (size_t i = 0; i < shf_block_sample_count(block); ++i) {
        const shf_sample* sample = shf_block_sample(block, i);
        keys.push_back(is_whole(sample) ? key_of(sample) : "broken");
    }
    shf_block_unref(block);
    return keys;
}

inline std::vector<std::string> batch_of(BatchClient& client) {
    std::vector<std::string> keys;
    if (const BatchHandle batch = client.next_batch())
        for (size_t i = 0; i < shf_batch_row_count(batch.get()); ++i)
            keys.push_back(text_of(column(batch, "__key__"), i));
    return keys;
}

}  // namespace shf::test
