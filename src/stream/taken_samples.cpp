#include "stream/taken_samples.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace shf {

namespace {

bool same_lane(LanePlace a, LanePlace b) {
    return a.part == b.part && a.lane == b.lane;
}

// The runs of one lane, which are made when there are none.
std::vector<uint64_t>& runs_of(std::vector<WaitingAndGiven>& all, LanePlace from) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const WaitingAndGiven& samples) {
        return same_lane(samples.from, from);
    });
    if (found != all.end()) return found->runs;
    return all.emplace_back(WaitingAndGiven{from, {}}).runs;
}

// Runs at even places are of samples that wait.
void add_run(std::vector<uint64_t>& runs, bool given, uint64_t count) {
    if (runs.empty()) runs.push_back(0);
    if ((runs.size() % 2 == 0) != given) runs.push_back(0);
    runs.back() += count;
}

}  // namespace

void TakenSamples::restore(std::vector<WaitingAndGiven> given) {
    for (WaitingAndGiven& samples : given)
        restored_.push_back({samples.from, std::move(samples.runs)});
}

void TakenSamples::stand_at(std::shared_ptr<const Position> position) {
    anchors_.push_back({count(), std::move(position)});
    forget();
}

TakenSamples::Taken TakenSamples::take(LanePlace from) {
    bool given = false;
    const auto place =
        std::find_if(restored_.begin(), restored_.end(),
                     [&](const Restored& restored) { return same_lane(restored.from, from); });
    if (place != restored_.end()) {
        while (place->runs[place->run] == 0) ++place->run;
        given = place->run % 2 == 1;
        // The last run is of samples that were given.
        if (--place->runs[place->run] == 0 && place->run + 1 == place->runs.size())
            restored_.erase(place);
    }
    samples_.push_back({.from = from, .given = given});
    return {count() - 1, given};
}

void TakenSamples::hand_out(std::vector<uint64_t> numbers) {
    for (const uint64_t number : latest_) samples_[number - first_].latest = false;
    for (const uint64_t number : numbers) {
        Sample& sample = samples_[number - first_];
        sample.given = sample.latest = true;
    }
    latest_ = std::move(numbers);
    forget();
}

void TakenSamples::leave_out(std::span<const uint64_t> numbers) {
    for (const uint64_t number : numbers) samples_[number - first_].given = true;
    forget();
}

// Drops what no position needs.
void TakenSamples::forget() {
    while (anchors_.size() > 1) {
        const auto begin = samples_.begin();
        const auto end = begin + static_cast<std::ptrdiff_t>(anchors_[1].number - first_);
        if (!std::all_of(begin, end,
                         [](const Sample& sample) { return sample.given && !sample.latest; }))
            return;
        samples_.erase(begin, end);
        anchors_.pop_front();
        first_ = anchors_.front().number;
    }
}

void TakenSamples::add_restored(std::vector<WaitingAndGiven>& runs) const {
    for (const Restored& restored : restored_)
        for (size_t i = restored.run; i < restored.runs.size(); ++i)
            if (restored.runs[i] > 0)
                add_run(runs_of(runs, restored.from), i % 2 == 1, restored.runs[i]);
}

Position TakenSamples::position(bool unused) const {
    const auto has_had = [&](const Sample& sample) {
        return sample.given && !(unused && sample.latest);
    };
    auto next = std::find_if_not(samples_.begin(), samples_.end(), has_had);
    const uint64_t number = first_ + static_cast<uint64_t>(next - samples_.begin());
    // The last one that is not behind it.
    const auto anchor = std::prev(std::upper_bound(
        anchors_.begin(), anchors_.end(), number,
        [](uint64_t wanted, const Anchor& other) { return wanted < other.number; }));
    Position position = *anchor->position;
    for (uint64_t i = anchor->number; i < number; ++i) position.skip(samples_[i - first_].from);
    std::vector<WaitingAndGiven> runs;
    for (; next != samples_.end(); ++next) add_run(runs_of(runs, next->from), has_had(*next), 1);
    add_restored(runs);
    for (WaitingAndGiven& samples : runs) {
        // What follows the last sample that he has had is as ever.
        if (samples.runs.size() % 2 == 1) samples.runs.pop_back();
        if (!samples.runs.empty()) position.set_given(std::move(samples));
    }
    return position;
}

Position TakenSamples::before_all(Position position) const {
    for (const Restored& restored : restored_) position.set_given({restored.from, restored.runs});
    return position;
}

}  // namespace shf
