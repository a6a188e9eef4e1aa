#include "feed/feed_counts.h"

#include <shardfeed.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>

namespace shf {

namespace {

uint64_t now_ns() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
}

// Not all numbers are counters.
bool only_grows(int32_t stat) {
    const char* const kind = describe_stat(stat, SHF_COUNTER_KIND);
    return kind && std::string_view(kind) == "counter";
}

// Those of a stream that are none of a lane, or are no sums.
bool is_of_lanes(int32_t stat) {
    constexpr std::array<int32_t, 4> others = {SHF_STAT_SAMPLES, SHF_STAT_BYTES,
                                               SHF_STAT_MEMORY_PEAK, SHF_STAT_EPOCH_SAMPLES};
    return describe_stat(stat, SHF_COUNTER_NAME) &&
           std::find(others.begin(), others.end(), stat) == others.end();
}

// Seconds, exactly.
std::string seconds(uint64_t nanoseconds) {
    constexpr uint64_t in_second = 1'000'000'000;
    const std::string rest = std::to_string(nanoseconds % in_second);
    return std::to_string(nanoseconds / in_second) + '.' + std::string(9 - rest.size(), '0') + rest;
}

void append_metric(std::string& text, const std::string& name, std::string_view kind,
                   std::string_view help, const std::string& value) {
    text += "# HELP " + name + ' ';
    text += help;
    text += "\n# TYPE " + name + ' ';
    text += kind;
    text += '\n' + name + ' ' + value + '\n';
}

// "reader_wait_ns" is shardfeed_reader_wait_seconds_total, "memory" shardfeed_memory_bytes.
void append_stat(std::string& text, int32_t stat, uint64_t value) {
    const std::string_view unit = describe_stat(stat, SHF_COUNTER_UNIT);
    std::string name = std::string("shardfeed_") + describe_stat(stat, SHF_COUNTER_NAME);
    const bool is_time = unit == "ns";
    if (is_time) name.replace(name.size() - 2, 2, "seconds");
    if (unit == "bytes" && !name.ends_with("_bytes")) name += "_bytes";
    if (only_grows(stat)) name += "_total";
    append_metric(text, name, describe_stat(stat, SHF_COUNTER_KIND),
                  describe_stat(stat, SHF_COUNTER_HELP),
                  is_time ? seconds(value) : std::to_string(value));
}

}  // namespace

void FeedCounts::begin_wait() {
    const std::lock_guard lock(mutex_);
    ++waits_;
    wait_ns_ -= now_ns();
}

void FeedCounts::end_wait() {
    const std::lock_guard lock(mutex_);
    --waits_;
    wait_ns_ += now_ns();
}

uint64_t FeedCounts::credit_wait_ns() const {
    const std::lock_guard lock(mutex_);
    return wait_ns_ + waits_ * now_ns();
}

void FeedCounts::add_lane(const StreamContext& lane) {
    const std::lock_guard lock(mutex_);
    lanes_.push_back(&lane);
}

void FeedCounts::remove_lane(const StreamContext& lane) {
    const std::lock_guard lock(mutex_);
    std::erase(lanes_, &lane);
    for (int32_t stat = 0; stat < Stats::size; ++stat)
        if (only_grows(stat)) ended_[static_cast<size_t>(stat)] += lane.stat(stat);
}

uint64_t FeedCounts::stat(int32_t stat) const {
    const std::lock_guard lock(mutex_);
    uint64_t sum = ended_[static_cast<size_t>(stat)];
    for (const StreamContext* const lane : lanes_) sum += lane->stat(stat);
    return sum;
}

std::string metrics_of(const FeedCounts& counts) {
    std::string text;
    const auto add = [&](const char* name, const char* kind, const char* help,
                         const std::string& value) {
        append_metric(text, std::string("shardfeed_feed_") + name, kind, help, value);
    };
    const auto number = [](uint64_t value) { return std::to_string(value); };
    add("consumers", "gauge", "streams that are connected", number(counts.consumers));
    add("lanes", "gauge", "lanes that are read for them", number(counts.lanes));
    add("credit_messages", "gauge", "messages that may be sent, because consumers asked for them",
        number(counts.credit));
    add("rows_total", "counter", "rows or samples that were sent", number(counts.samples));
    add("sent_bytes_total", "counter",
        "bytes of messages with rows, compressed where that is asked", number(counts.bytes));
    add("refused_total", "counter", "messages of strangers and of consumers that were refused",
        number(counts.refused));
    add("credit_wait_seconds_total", "counter",
        "time that lanes waited for their consumers to ask for more, added up",
        seconds(counts.credit_wait_ns()));
    for (int32_t stat = 0; stat < Stats::size; ++stat)
        if (is_of_lanes(stat)) append_stat(text, stat, counts.stat(stat));
    return text;
}

}  // namespace shf
