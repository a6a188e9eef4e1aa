#include "stream/taken_samples.h"

#include <algorithm>
#include <iterator>
#include <numeric>
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

void TakenSamples::restore(std::vector<WaitingAndGiven> given, std::vector<BegunSample> begun) {
    for (WaitingAndGiven& samples : given)
        restored_.push_back({samples.from, std::move(samples.runs)});
    begun_ = std::move(begun);
}

// How many elements of the next sample of a lane were given before the stream resumed.
uint64_t TakenSamples::take_begun(LanePlace from) {
    uint64_t elements = 0;
    for (BegunSample& begun : begun_) {
        if (!same_lane(begun.from, from)) continue;
        if (begun.behind == 0)
            elements = begun.elements;
        else
            --begun.behind;
    }
    if (elements > 0)
        begun_.erase(std::find_if(begun_.begin(), begun_.end(), [&](const BegunSample& begun) {
            return same_lane(begun.from, from);
        }));
    return elements;
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
    const uint64_t elements = take_begun(from);
    samples_.push_back({.from = from, .given = given, .elements = elements});
    return {count() - 1, given, elements};
}

void TakenSamples::hand_out(std::vector<HandedOut> handed) {
    for (const HandedOut& last : latest_) {
        Sample& sample = samples_[last.number - first_];
        sample.latest = false;
        sample.latest_elements = 0;
    }
    for (const HandedOut& now : handed) {
        Sample& sample = samples_[now.number - first_];
        if (now.whole) sample.given = sample.latest = true;
        sample.elements += now.elements;
        sample.latest_elements += now.elements;
    }
    latest_ = std::move(handed);
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
    const uint64_t start = in_windows_ ? anchor->number : number;
    Position position = *anchor->position;
    for (uint64_t i = anchor->number; i < start; ++i) position.skip(samples_[i - first_].from);
    std::vector<WaitingAndGiven> runs;
    std::vector<BegunSample> begun;
    for (uint64_t i = start; i < count(); ++i) {
        const Sample& sample = samples_[i - first_];
        std::vector<uint64_t>& own = runs_of(runs, sample.from);
        const bool had = has_had(sample);
        const uint64_t elements = sample.elements - (unused ? sample.latest_elements : 0);
        if (!had && elements > 0)
            begun.push_back(
                {sample.from, elements, std::accumulate(own.begin(), own.end(), uint64_t{0})});
        add_run(own, had, 1);
    }
    for (BegunSample sample : begun_) {
        const std::vector<uint64_t>& own = runs_of(runs, sample.from);
        sample.behind += std::accumulate(own.begin(), own.end(), uint64_t{0});
        begun.push_back(sample);
    }
    add_restored(runs);
    for (const BegunSample& sample : begun) position.set_begun(sample);
    for (WaitingAndGiven& samples : runs) {
        // What follows the last sample that he has had is as ever.
        if (samples.runs.size() % 2 == 1) samples.runs.pop_back();
        if (!samples.runs.empty()) position.set_given(std::move(samples));
    }
    return position;
}

Position TakenSamples::before_all(Position position) const {
    for (const BegunSample& sample : begun_) position.set_begun(sample);
    for (const Restored& restored : restored_) position.set_given({restored.from, restored.runs});
    return position;
}

}  // namespace shf
