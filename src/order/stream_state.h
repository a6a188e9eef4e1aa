// A saved stream: the position of each lane, and what must be the same when it resumes. No bytes of
// samples, and of URLs only a hash.
#pragma once

#include "core/error.h"
#include "order/indexed_share.h"
#include "order/lane_readers.h"
#include "order/lane_state.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shf {

struct StreamState {
    // The options that the order of samples depends on, by name, as text.
    std::vector<std::pair<std::string, std::string>> options;
    uint64_t shards = 0;       // in the list
    uint64_t shards_hash = 0;  // of their names
    uint64_t lanes_in_all = 0;
    // Of how many consumers, and those among them whose state this is, ascending: one, or several
    // when it was merged.
    uint64_t consumers = 1;
    std::vector<uint32_t> of = {0};
    Position position;    // of the lanes of all of them
    std::string columns;  // of batches, as BatchPlan has it
    // Of a mix, which has no shards, lanes and consumers of its own, and of whose position the
    // parts are here.
    std::vector<StreamState> parts;

    // The first stream of shards in a mix; all streams of a mix with epoch_samples have the same
    // consumers.
    [[nodiscard]] const StreamState& first_stream() const {
        return parts.empty() ? *this : parts.front().first_stream();
    }
    [[nodiscard]] bool is_of(uint64_t consumer, uint64_t among) const {
        return consumers == among && of.size() == 1 && of[0] == consumer;
    }
    [[nodiscard]] bool is_of_all() const { return of.size() == consumers; }
    // Saved with the option by_index: what it has as lanes are the consumers.
    [[nodiscard]] bool by_index() const;
    // Likewise: notes how its samples are dealt out, and says it, for epochs as those of `now`.
    void set_dealing(const Dealing& dealing, bool skipped);
    [[nodiscard]] Dealing dealing(const Dealing& now) const;
    // Samples were left out in its run.
    [[nodiscard]] bool has_skipped() const;
    [[nodiscard]] LaneReaders lane_readers() const { return {lanes_in_all, consumers}; }
    // Takes over the position of a stream with this identity.
    void stand_at(Position where);
    // The samples of all parts that rows have had a part of.
    [[nodiscard]] std::vector<BegunSample> begun_samples() const;
    // Of the lanes of all parts from which the user has had samples out of their order.
    [[nodiscard]] std::vector<WaitingAndGiven> given_samples() const;
};

// Mixes of mixes of ..., at most.
constexpr unsigned deepest_mix = 8;

// One state of the lanes of several; of mixes, part by part. Throws Error(USAGE) when they are not
// of one run.
StreamState merge(std::span<const StreamState> states);

// Throws Error(USAGE), which names what is different, unless a stream of the second kind can
// resume at the position of the first.
void check_same_run(const StreamState& saved, const StreamState& now);

// Runs what concerns one part of a mix. Errors say which.
template <typename Act>
auto about_part(size_t part, Act act) {
    try {
        return act();
    } catch (const Error& error) {
        Fault fault = error.fault();
        fault.cause = "part " + std::to_string(part) + " of the mix: " + fault.cause;
        throw Error(std::move(fault));
    }
}

}  // namespace shf
