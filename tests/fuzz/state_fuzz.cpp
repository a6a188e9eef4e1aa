// Fuzz target of saved states: any bytes as a state. What is taken for one is written and read
// again as the same, and a stream that goes on from it delivers samples of its shards, or an error.
#include "order/state_encoding.h"
#include "state_shards.h"

#include "core/error.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <span>
#include <string_view>

namespace {

using namespace shf::test;

const StateShards& shards() {
    static const StateShards made;
    return made;
}

// The options of the stream that was saved, as far as they are quick: false if they are not.
bool options_of(const shf::StreamState& state, shf::Options& options) {
    if (!state.parts.empty()) return false;  // a mix: its parts are states like this one
    constexpr std::string_view of_consumers[] = {"batch", "samples", "skipped"};
    for (const auto& [name, value] : state.options) {
        if (std::find(std::begin(of_consumers), std::end(of_consumers), name) ==
            std::end(of_consumers))
            options.set(name, value);
        else if (name == "batch" && value != "1")
            return false;  // of batches
    }
    // A lane that is epochs behind the others goes through all of them, even if they have no
    // sample.
    const auto slow = [&](const shf::LaneState& lane) {
        return lane.skip > 1000 || lane.epoch > options.epoch + 20;
    };
    if (state.lanes_in_all > 8 || options.shuffle > 1000 ||
        std::any_of(state.position.lanes.begin(), state.position.lanes.end(), slow))
        return false;
    options.lanes = state.lanes_in_all;
    const uint64_t consumer = state.of.size() == 1 ? state.of[0] : 0;
    if (state.by_index()) {
        // Sometimes others than those of the state.
        options.rank = consumer / options.num_workers % options.world_size;
        options.worker = consumer % options.num_workers;
        if (state.is_of_all() && state.consumers > 1) options.world_size += 1;
        return options.world_size <= 64 && options.num_workers <= 8;
    }
    options.world_size = std::max<uint64_t>(state.consumers, 1);
    options.rank = consumer;
    return true;
}

// Every sample of it is one of the shards.
bool take(shf::Stream& stream, bool blocks) {
    if (blocks) {
        const shf::BlockRef block = stream.next_block(10);
        for (uint32_t i = 0; block && i < block->count; ++i)
            if (!shards().has(*block, i)) std::abort();
        return static_cast<bool>(block);
    }
    shf::Sample* sample = stream.next();
    if (!sample) return false;
    if (!shards().has(*sample->block, sample->index)) std::abort();
    sample->block->unref();
    return true;
}

void go_on(const shf::StreamState& state, bool blocks) {
    shf::Options options = state_fuzz_options();
    if (!options_of(state, options)) return;
    const auto stream = shards().open(options);
    stream->restore(state);
    for (int i = 0; i < 30; ++i) {
        // What was restored can be saved, at once and later.
        if (i % 10 == 0) (void)shf::encode(stream->save(0));
        if (!take(*stream, blocks)) break;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    shf::StreamState state;
    try {
        state = shf::decode_state({data, size});
    } catch (const shf::Error& error) {
        if (error.code() != SHF_E_FORMAT && error.code() != SHF_E_INTEGRITY &&
            error.code() != SHF_E_UNSUPPORTED)
            std::abort();
        return 0;
    }
    const std::vector<uint8_t> blob = shf::encode(state);
    if (shf::encode(shf::decode_state(blob)) != blob) std::abort();
    try {
        const shf::StreamState merged = shf::merge({&state, 1});
        if (shf::encode(shf::decode_state(shf::encode(merged))) != shf::encode(merged))
            std::abort();
        go_on(state, size % 2 == 0);
    } catch (const shf::Error& error) {
        // TIMEOUT: it hangs.
        if (error.code() == SHF_E_INTERNAL || error.code() == SHF_E_NOMEM ||
            error.code() == SHF_E_TIMEOUT)
            std::abort();
    }
    return 0;
}

#ifdef SHF_LIBFUZZER
#include "other_number.h"

#include <random>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using Random = std::minstd_rand;
using shf::test::other_number;

void change_shard(shf::ShardState& shard, Random& random) {
    shf::ShardPosition& position = shard.position;
    uint64_t* const numbers[] = {&shard.nth, &position.from.offset, &position.from.number,
                                 &shard.ordinal};
    switch (random() % 4) {
        case 0:
            position.next =
                random() % 3 == 0 ? shf::ShardState::over : other_number(position.next, random);
            break;
        case 1: shard.bad.resize(random() % 5, random() % 300); break;
        case 2: position.version = random() % 2 == 0 ? 0 : position.version + 1; break;
        default: {
            uint64_t* const number = numbers[random() % std::size(numbers)];
            *number = other_number(*number, random);
        }
    }
    std::sort(shard.bad.begin(), shard.bad.end());
}

void change_lane(shf::LaneState& lane, Random& random) {
    uint64_t* const numbers[] = {&lane.epoch, &lane.taken, &lane.drawn,
                                 &lane.put,   &lane.begun, &lane.skip};
    switch (random() % 10) {
        case 0:
        case 1: lane.closed = !lane.closed; break;
        case 9: lane.begun_later = {{1 + random() % 30, 1 + random() % 300}}; break;
        case 8: lane.waiting_and_given = {random() % 3, 1 + random() % 40}; break;
        case 2:
            if (!lane.shards.empty())
                lane.shards.erase(lane.shards.begin() +
                                  static_cast<long>(random() % lane.shards.size()));
            break;
        case 3:
            if (lane.shards.empty())
                lane.shards.emplace_back();
            else
                lane.shards.push_back(lane.shards[random() % lane.shards.size()]);
            break;
        case 4:
        case 5:
            if (!lane.shards.empty())
                change_shard(lane.shards[random() % lane.shards.size()], random);
            break;
        default: {
            uint64_t* const number = numbers[random() % std::size(numbers)];
            *number = other_number(*number, random);
        }
    }
}

}  // namespace

// Most mutations would end at a wrong checksum; most of those are of what a state says.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
    Random random(seed);
    if (random() % 16 == 0) return LLVMFuzzerMutate(data, size, max_size);
    try {
        shf::StreamState state = shf::decode_state({data, size});
        for (uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
            auto& lanes = state.position.lanes;
            if (!lanes.empty() && random() % 8 != 0) {
                change_lane(lanes[random() % lanes.size()], random);
            } else if (random() % 2 == 0) {
                state.position.remaining = other_number(state.position.remaining, random);
            } else if (!state.options.empty()) {
                auto& value = state.options[random() % state.options.size()].second;
                char text[32];
                const size_t length = std::min(value.size(), sizeof text);
                std::copy_n(value.begin(), length, text);
                value.assign(
                    text, LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(text), length, sizeof text));
                std::replace(value.begin(), value.end(), '\n', ' ');
            }
        }
        const std::vector<uint8_t> blob = shf::encode(state);
        if (blob.size() > max_size) return size;
        std::copy(blob.begin(), blob.end(), data);
        return blob.size();
    } catch (const shf::Error&) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
}
#endif
