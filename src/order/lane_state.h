// The position of one lane: what a saved state has of it. Plain numbers, no bytes of samples.
#pragma once

#include "core/shard_position.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace shf {

// What to do about a state that no stream can have saved.
inline constexpr const char* state_help = "restore the state as it was saved";

// One shard of a lane where reading must resume: because samples of it are in the shuffle
// buffer, or because it has not been read to its end.
struct ShardState {
    static constexpr uint64_t over = ShardPosition::never;

    uint64_t nth = 0;  // it is the lane's nth of the epoch, counted from 0
    // `next` is the first sample that the lane has not taken in; `over`: it has done with the
    // shard.
    ShardPosition position{.from = {}, .next = over};
    // The number that the sample at position.from has among all good ones of the lane in this
    // epoch.
    uint64_t ordinal = 0;
    std::vector<uint64_t> bad;  // of the samples after it, ascending numbers
    // Until the shard has ended: the last sample before position.next whose start is known. Reading
    // can start there when nothing of the buffer is read along.
    SampleStart near;

    [[nodiscard]] bool is_over() const { return position.next == over; }
};

// Elements that rows have had of a sample, which comes behind so many others of its lane.
struct BegunLater {
    uint64_t behind = 0;    // at least one
    uint64_t elements = 0;  // likewise
};

struct LaneState {
    uint32_t lane = 0;
    bool closed = false;  // nothing more comes into the shuffle buffer in this epoch
    uint64_t epoch = 0;   // past the last one when it is at its end
    uint64_t taken = 0;   // samples that it gave in this epoch
    uint64_t drawn = 0;   // random numbers that the shuffle buffer drew in this epoch
    uint64_t put = 0;     // samples that came into the shuffle buffer in this epoch
    // The first `base` of them had come and gone when the buffer was filled again: a fault had
    // closed it, which a restored run then did not meet. 0: it was never empty before its end.
    uint64_t base = 0;
    uint64_t begun = 0;  // shards of the epoch that it has begun: the next one is this
    // Samples after this place that the user has had, or that are not to be given again; of all of
    // the lane's, unless Position::skips_own.
    uint64_t skip = 0;
    // Of the sample after those: elements of its arrays that rows have had, with the option pack.
    uint64_t begun_elements = 0;
    // With the options bucket and pack_window: so many samples after those of `skip` the user has
    // not had, then so many he has, and so on, up to the last one that he has had. None of them but
    // the first is 0.
    std::vector<uint64_t> waiting_and_given;
    // With the option pack_window: as begun_elements, of samples that come later; ascending.
    std::vector<BegunLater> begun_later;
    std::vector<ShardState> shards;  // oldest first; all but the last one are over

    static LaneState at_start(uint32_t lane, uint64_t epoch) {
        LaneState state;
        state.lane = lane;
        state.epoch = epoch;
        return state;
    }
};

// The lane that a sample came through.
struct LanePlace {
    uint32_t part = 0;  // number of its stream among those of a mix, nested ones counted through
    uint32_t lane = 0;
};

// A sample of which rows have had some elements: the next one of its lane, or one behind that.
struct BegunSample {
    LanePlace from;
    uint64_t elements = 0;
    uint64_t behind = 0;  // samples of the lane that come before it
};

// Of the samples of a lane that come next: see LaneState.
struct WaitingAndGiven {
    LanePlace from;
    std::vector<uint64_t> runs;
};

// Where the lanes of one consumer stand, or the parts of a mix.
struct Position {
    std::vector<LaneState> lanes;     // ascending
    uint64_t remaining = UINT64_MAX;  // samples until the end; UINT64_MAX: not counted
    std::vector<Position> parts;      // of a mix, which has no lanes of its own
    uint64_t mixed = 0;               // samples that it took from them
    // With lanes that several consumers read: samples of them that came and went, whosoever's.
    uint64_t passed = 0;
    // There LaneState::skip counts those that are for this consumer.
    bool skips_own = false;

    // Streams that are no mixes.
    [[nodiscard]] uint32_t streams() const {
        uint32_t count = parts.empty() ? 1 : 0;
        for (const Position& part : parts) count += part.streams();
        return count;
    }

    // Moves on by one sample of a lane.
    void skip(LanePlace from) {
        for (Position& part : parts) {
            const uint32_t streams = part.streams();
            if (from.part < streams) {
                ++mixed;
                return part.skip(from);
            }
            from.part -= streams;
        }
        ++lane_at(from.lane)->skip;
        if (remaining != UINT64_MAX) --remaining;
    }

    // Says that rows have had a part of a sample of a lane; of one of another consumer nothing is
    // said. Those of one lane in their order.
    void set_begun(BegunSample sample) {
        LaneState* lane = find(sample.from);
        if (lane && sample.behind == 0) lane->begun_elements = sample.elements;
        if (lane && sample.behind > 0)
            lane->begun_later.push_back({sample.behind, sample.elements});
    }
    // Likewise, which of the samples of a lane that come next the user has had.
    void set_given(WaitingAndGiven samples) {
        if (LaneState* lane = find(samples.from)) lane->waiting_and_given = std::move(samples.runs);
    }

  private:
    // NULL: of another consumer.
    [[nodiscard]] LaneState* find(LanePlace from) {
        for (Position& part : parts) {
            const uint32_t streams = part.streams();
            if (from.part < streams) return part.find(from);
            from.part -= streams;
        }
        const auto place = lane_at(from.lane);
        return place != lanes.end() && place->lane == from.lane ? &*place : nullptr;
    }
    [[nodiscard]] std::vector<LaneState>::iterator lane_at(uint32_t lane) {
        return std::lower_bound(
            lanes.begin(), lanes.end(), lane,
            [](const LaneState& state, uint32_t number) { return state.lane < number; });
    }
};

}  // namespace shf
