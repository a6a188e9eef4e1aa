#include "order/stream_state.h"

#include "core/options.h"
#include "order/state_encoding.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>

namespace shf {

void StreamState::stand_at(Position where) {
    for (size_t i = 0; i < parts.size(); ++i) parts[i].stand_at(std::move(where.parts[i]));
    where.parts.clear();
    position = std::move(where);
}

std::vector<BegunSample> StreamState::begun_samples() const {
    std::vector<BegunSample> begun;
    for (const LaneState& lane : position.lanes) {
        if (lane.begun_elements > 0) begun.push_back({{0, lane.lane}, lane.begun_elements});
        for (const BegunLater& later : lane.begun_later)
            begun.push_back({{0, lane.lane}, later.elements, later.behind});
    }
    uint32_t streams = 0;
    for (const StreamState& part : parts) {
        for (BegunSample& sample : part.begun_samples()) {
            sample.from.part += streams;
            begun.push_back(sample);
        }
        streams += part.position.streams();
    }
    return begun;
}

std::vector<WaitingAndGiven> StreamState::given_samples() const {
    std::vector<WaitingAndGiven> given;
    for (const LaneState& lane : position.lanes)
        if (!lane.waiting_and_given.empty())
            given.push_back({{0, lane.lane}, lane.waiting_and_given});
    uint32_t streams = 0;
    for (const StreamState& part : parts) {
        for (WaitingAndGiven& samples : part.given_samples()) {
            samples.from.part += streams;
            given.push_back(std::move(samples));
        }
        streams += part.position.streams();
    }
    return given;
}

namespace {

// How samples were dealt out, beside the options that must be the same.
constexpr const char* dealing_names[] = {"world_size", "num_workers", "batch", "samples",
                                         "skipped"};

bool is_dealing(std::string_view name) {
    return std::find(std::begin(dealing_names), std::end(dealing_names), name) !=
           std::end(dealing_names);
}

std::optional<std::string> option_of(const StreamState& state, std::string_view name) {
    for (const auto& [known, value] : state.options)
        if (known == name) return value;
    return std::nullopt;
}

}  // namespace

bool StreamState::by_index() const {
    return option_of(*this, "by_index") == "true";
}

bool StreamState::has_skipped() const {
    return option_of(*this, "skipped") == "1";
}

void StreamState::set_dealing(const Dealing& dealing, bool skipped) {
    const uint64_t values[] = {dealing.world_size, dealing.num_workers, dealing.batch,
                               dealing.samples, skipped ? 1U : 0U};
    for (size_t i = 0; i < std::size(values); ++i)
        options.emplace_back(dealing_names[i], std::to_string(values[i]));
}

Dealing StreamState::dealing(const Dealing& now) const {
    uint64_t values[std::size(dealing_names)];
    for (size_t i = 0; i < std::size(values); ++i) {
        const std::string text = option_of(*this, dealing_names[i]).value_or("");
        const auto [end, error] =
            std::from_chars(text.data(), text.data() + text.size(), values[i]);
        if (error != std::errc() || end != text.data() + text.size() ||
            (i < 3 && (values[i] == 0 || values[i] > UINT32_MAX)))
            throw_damaged_state("does not say how samples were dealt out");
    }
    Dealing dealing = now;
    dealing.world_size = values[0];
    dealing.num_workers = values[1];
    dealing.batch = values[2];
    if (dealing.consumers() != consumers)
        throw_damaged_state("was dealt out to another number of consumers");
    if (values[3] != now.samples)
        throw Error(SHF_E_CHANGED,
                    "the state was saved with " + plural(values[3], "sample") +
                        " in an epoch, and these are " + std::to_string(now.samples),
                    "give the shards that it was saved with, or start the epoch again");
    return dealing;
}

namespace {

// Takes what the state of another consumer says of the same run. Throws Error(USAGE).
void merge_dealing(StreamState& all, const StreamState& other) {
    for (auto& [name, value] : all.options) {
        if (!is_dealing(name)) continue;
        const std::string theirs = option_of(other, name).value_or("");
        if (name == "skipped")
            value = value == "0" ? theirs : value;
        else if (value != theirs)
            throw Error(SHF_E_USAGE,
                        "the states are of runs with " + name + "=" + value + " and " + theirs,
                        "merge the states of all ranks and workers of one run");
    }
}

}  // namespace

void check_same_run(const StreamState& saved, const StreamState& now) {
    const auto changed = [](const std::string& what, const std::string& help) {
        throw Error(SHF_E_USAGE, what, help);
    };
    const char* same = "open the stream as it was when the state was saved";
    const auto kind_of = [](const StreamState& state) {
        return state.parts.empty() ? std::string("a stream of shards")
                                   : "a mix of " + std::to_string(state.parts.size()) + " streams";
    };
    if (saved.parts.size() != now.parts.size())
        changed("the state is of " + kind_of(saved) + ", and this is " + kind_of(now), same);
    for (const auto& [name, value] : now.options) {
        if (is_dealing(name)) continue;
        const auto was =
            std::find_if(saved.options.begin(), saved.options.end(),
                         [&, &name = name](const auto& option) { return option.first == name; });
        // A state of an older version lacks the options that came since: it was saved without them.
        const std::string before = was == saved.options.end() ? default_of(name) : was->second;
        if (before != value)
            changed("the state was saved with " + name + "=" + before + ", and this is " + name +
                        "=" + value,
                    same);
    }
    if (saved.lanes_in_all != now.lanes_in_all)
        changed("the state was saved with " + plural(saved.lanes_in_all, "lane") +
                    ", and these are " + std::to_string(now.lanes_in_all),
                "set the option lanes to " + std::to_string(saved.lanes_in_all));
    if (saved.shards != now.shards)
        changed("the state was saved with " + plural(saved.shards, "shard") + ", and these are " +
                    std::to_string(now.shards),
                same);
    if (saved.shards_hash != now.shards_hash)
        changed("the state was saved with shards of other names", same);
    for (size_t i = 0; i < now.parts.size(); ++i)
        about_part(i, [&] { check_same_run(saved.parts[i], now.parts[i]); });
}

namespace {

// Consumers that read the same lanes are merged where none of them has left out a sample that
// another one, which went further, has passed: the lanes stand where that one is.
void merge_shared_lanes(const LaneReaders& readers, std::span<const StreamState> states,
                        std::vector<LaneState>& lanes) {
    std::map<uint64_t, const StreamState*> furthest;  // by group
    for (const StreamState& state : states) {
        const auto& own = state.position.lanes;
        if (state.position.skips_own &&
            std::any_of(own.begin(), own.end(), [](const auto& lane) { return lane.skip > 0; }))
            throw Error(SHF_E_USAGE,
                        "the state of consumer " + std::to_string(state.of[0]) +
                            ", whose lanes others read too, was saved in the middle of a batch",
                        "save it between two batches");
        const StreamState*& one = furthest[state.of[0] % readers.groups()];
        if (!one || state.position.passed > one->position.passed) one = &state;
    }
    for (const StreamState& state : states) {
        const StreamState& other = *furthest[state.of[0] % readers.groups()];
        if (readers.owns_any(state.of[0], state.position.passed, other.position.passed))
            throw Error(SHF_E_USAGE,
                        "consumers " + std::to_string(state.of[0]) + " and " +
                            std::to_string(other.of[0]) +
                            ", which read the same lanes, did not stop at the same step",
                        "merge states that all were saved after the same number of samples");
    }
    for (const auto& [group, state] : furthest)
        lanes.insert(lanes.end(), state->position.lanes.begin(), state->position.lanes.end());
}

std::vector<uint32_t> merge_consumers(const StreamState& a, const StreamState& b) {
    if (a.consumers != b.consumers)
        throw Error(SHF_E_USAGE,
                    "the states are of " + std::to_string(a.consumers) + " and of " +
                        plural(b.consumers, "consumer"),
                    "merge the states of all ranks and workers of one run");
    std::vector<uint32_t> of;
    std::merge(a.of.begin(), a.of.end(), b.of.begin(), b.of.end(), std::back_inserter(of));
    const auto twice = std::adjacent_find(of.begin(), of.end());
    if (twice != of.end())
        throw Error(SHF_E_USAGE, "two of the states are of consumer " + std::to_string(*twice),
                    "give the state of every consumer once");
    return of;
}

}  // namespace

StreamState merge(std::span<const StreamState> states) {
    if (states.empty())
        throw Error(SHF_E_USAGE, "no states to merge", "give the state of every consumer");
    if (states.size() == 1) return states[0];
    StreamState all = states[0];
    const bool shared = all.parts.empty() && !all.by_index() && all.lane_readers().readers() > 1;
    for (const StreamState& state : states.subspan(1)) {
        check_same_run(all, state);
        if (all.by_index()) merge_dealing(all, state);
        if (all.columns.empty()) all.columns = state.columns;
        all.position.mixed = std::max(all.position.mixed, state.position.mixed);
        if ((all.position.remaining == UINT64_MAX) != (state.position.remaining == UINT64_MAX))
            throw_damaged_state("does not belong to the others");
        if (all.position.remaining != UINT64_MAX)
            all.position.remaining += state.position.remaining;
        if (all.position.remaining > largest_in_state && all.position.remaining != UINT64_MAX)
            throw_damaged_state("has a number that is too large");
        if (!all.parts.empty()) continue;
        all.of = merge_consumers(all, state);
        if (!shared)
            all.position.lanes.insert(all.position.lanes.end(), state.position.lanes.begin(),
                                      state.position.lanes.end());
    }
    if (shared) {
        if (!all.is_of_all())
            throw Error(SHF_E_USAGE,
                        "the states are of " + std::to_string(all.of.size()) + " of " +
                            plural(all.consumers, "consumer") + ", which share lanes",
                        "give the states of all of them at once");
        all.position.passed = 0;  // those that resume count from here
        all.position.skips_own = false;
        all.position.lanes.clear();
        merge_shared_lanes(all.lane_readers(), states, all.position.lanes);
    }
    std::sort(all.position.lanes.begin(), all.position.lanes.end(),
              [](const LaneState& a, const LaneState& b) { return a.lane < b.lane; });
    for (size_t i = 1; i < all.position.lanes.size(); ++i)
        if (all.position.lanes[i - 1].lane == all.position.lanes[i].lane)
            throw_damaged_state("has a lane of another consumer");
    for (size_t i = 0; i < all.parts.size(); ++i) {
        std::vector<StreamState> parts;
        for (const StreamState& state : states) parts.push_back(state.parts[i]);
        all.parts[i] = about_part(i, [&] { return merge(parts); });
    }
    return all;
}

}  // namespace shf
