// Samples that were taken from a sequence and come to the user in another order: which of them he
// has had, and the position at which a saved stream takes the others again. Numbers are those of
// samples as they were taken, counted from 0.
#pragma once

#include "order/lane_state.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace shf {

// Of a sample that the user gets, or a part of it.
struct HandedOut {
    uint64_t number = 0;
    bool whole = true;      // he has all of it now
    uint64_t elements = 0;  // else: so many more
};

class TakenSamples {
  public:
    // `in_windows`: samples are taken again from a place where the sequence was said to stand, no
    // matter how many samples after it were given.
    explicit TakenSamples(bool in_windows) : in_windows_(in_windows) {}

    // A stream resumes where the user has had some of the samples that come next, and parts of
    // others. Before anything is taken.
    void restore(std::vector<WaitingAndGiven> given, std::vector<BegunSample> begun);
    // The sequence stands at `position`, right before sample count(). At least once, before the
    // first sample; the more often, the fewer samples are taken again.
    void stand_at(std::shared_ptr<const Position> position);
    [[nodiscard]] uint64_t count() const { return first_ + samples_.size(); }

    // The next sample; whether the user had it before the stream resumed, or some elements of it.
    struct Taken {
        uint64_t number = 0;
        bool given = false;
        uint64_t elements = 0;
    };
    Taken take(LanePlace from);
    // The user has these, and surely those that were handed out before them.
    void hand_out(std::vector<HandedOut> samples);
    // Nobody will have these: they have no row.
    void leave_out(std::span<const uint64_t> numbers);

    // Of the first sample that the user has not had, or of the place before it that is last among
    // those where the sequence stood; it says which of those after it he has had.
    // `unused`: he has not had the ones that were handed out last.
    [[nodiscard]] Position position(bool unused) const;
    // Likewise before any sample was taken: `position` is that of the sequence.
    [[nodiscard]] Position before_all(Position position) const;

  private:
    struct Sample {
        LanePlace from;
        bool given = false;
        bool latest = false;    // it was given last
        uint64_t elements = 0;  // given of it
        uint64_t latest_elements = 0;
    };
    struct Anchor {
        uint64_t number = 0;
        std::shared_ptr<const Position> position;
    };
    // What a saved state has of a lane that was not taken yet.
    struct Restored {
        LanePlace from;
        std::vector<uint64_t> runs;
        size_t run = 0;
    };

    void forget();
    void add_restored(std::vector<WaitingAndGiven>& runs) const;
    [[nodiscard]] uint64_t take_begun(LanePlace from);

    const bool in_windows_;
    std::deque<Sample> samples_;  // from number `first_` on
    uint64_t first_ = 0;
    std::deque<Anchor> anchors_;  // the first one is of `first_`
    std::vector<Restored> restored_;
    std::vector<BegunSample> begun_;  // likewise
    std::vector<HandedOut> latest_;
};

}  // namespace shf
