#include "order/plan_report.h"

#include "order/indexed_share.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace shf {

namespace {

// Above that their parts are not added up: it would take seconds, and gigabytes.
constexpr uint64_t most_counted = uint64_t{1} << 22;

// Parts that differ by more than one percent are unequal.
bool apart(uint64_t least, uint64_t most) {
    return most - least > most / 100;
}

// 1234567 is "1,234,567".
std::string number(uint64_t value) {
    const std::string digits = std::to_string(value);
    std::string text;
    for (size_t i = 0; i < digits.size(); ++i) {
        if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
        text += digits[i];
    }
    return text;
}

std::string counted(uint64_t count, const char* noun) {
    return number(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string size(uint64_t bytes) {
    static constexpr std::array units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    auto value = static_cast<double>(bytes);
    size_t unit = 0;
    // What would be shown as 1024.0 is one of the next unit.
    for (; value >= 1023.95 && unit + 1 < units.size(); ++unit) value /= 1024;
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return text.data();
}

// "4 shards", "4 to 5 shards".
std::string counted(uint64_t least, uint64_t most, const char* noun) {
    return (least < most ? number(least) + " to " : "") + counted(most, noun);
}

// Sizes are claims of files: a sum that does not fit stays at the largest number.
void add(uint64_t& sum, uint64_t value) {
    if (__builtin_add_overflow(sum, value, &sum)) sum = PlanReport::unknown;
}

uint64_t sum_of(std::span<const uint64_t> values) {
    uint64_t sum = 0;
    for (const uint64_t value : values) add(sum, value);
    return sum;
}

// Empty where one of them does not fit: no shard has so many samples.
std::vector<uint32_t> counts_that_fit(const std::vector<uint64_t>& samples) {
    const auto fits = [](uint64_t count) { return count <= UINT32_MAX; };
    if (!std::all_of(samples.begin(), samples.end(), fits)) return {};
    std::vector<uint32_t> counts;
    counts.reserve(samples.size());
    for (const uint64_t count : samples) counts.push_back(static_cast<uint32_t>(count));
    return counts;
}

uint64_t rounded_up(uint64_t dividend, uint64_t divisor) {
    return dividend / divisor + (dividend % divisor != 0 ? 1 : 0);
}

}  // namespace

void PlanReport::Range::add(uint64_t value) {
    least = std::min(least, value);
    most = std::max(most, value);
}

PlanReport::PlanReport(const Options& options, KnownShards shards)
    : options_(options),
      known_(std::move(shards)),
      counts_(counts_that_fit(known_.samples)),
      plan_(options, known_.count, Idle::allow) {
    // Every lane is dealt out to its readers.
    if (options_.epoch_samples == 0 && !known_.samples.empty() && consumers() <= most_counted &&
        plan_.lanes() <= most_counted / plan_.lane_readers().readers())
        options_.by_index ? count_by_index() : count();
    const auto idle = plan_.idle_consumers();
    if (idle) warnings_.emplace_back(idle->what());
    warn_of_parts();
    warn_of_even();
    warn_of_shuffle();
    warn_of_lanes();
    warn_of_memory();
    write();
}

// ---- Counting -----------------------------------------------------------------------------------

void PlanReport::count() {
    const uint64_t groups = plan_.lane_readers().groups(), readers = plan_.lane_readers().readers();
    std::vector<uint64_t> samples(static_cast<size_t>(groups)), bytes(samples.size());
    // Lanes from the number of shards on have none, unless every lane draws some.
    const uint64_t lanes =
        options_.resample ? plan_.lanes() : std::min(plan_.lanes(), known_.count);
    for (uint64_t lane = 0; lane < lanes; ++lane) {
        const uint64_t shards = plan_.shards_of(static_cast<uint32_t>(lane));
        uint64_t of_lane = 0;
        const auto group = static_cast<size_t>(lane % groups);
        for (uint64_t nth = 0; nth < shards; ++nth) {
            const auto shard =
                static_cast<size_t>(plan_.shard(options_.epoch, static_cast<uint32_t>(lane), nth));
            add(of_lane, known_.samples[shard]);
            if (!known_.bytes.empty()) add(bytes[group], known_.bytes[shard]);
        }
        add(samples[group], std::min(of_lane, plan_.limit_of(lane)));
    }
    // The readers of a group take its samples in turn, and all of them read all of it.
    samples_.resize(static_cast<size_t>(consumers()));
    bytes_.resize(samples_.size());
    for (uint64_t consumer = 0; consumer < consumers(); ++consumer) {
        const auto group = static_cast<size_t>(consumer % groups);
        const uint64_t place = plan_.lane_readers().place(consumer);
        samples_[consumer] = samples[group] / readers + (place < samples[group] % readers ? 1 : 0);
        bytes_[consumer] = bytes[group];
    }
}

// Every consumer has some samples of all shards; of the bytes, about as large a part.
void PlanReport::count_by_index() {
    const uint64_t samples = sum_of(known_.samples), bytes = sum_of(known_.bytes);
    const Dealing dealing(options_, samples);
    for (uint64_t consumer = 0; consumer < consumers(); ++consumer) {
        const uint64_t own = IndexedShare(dealing, consumer, 0).count();
        samples_.push_back(own);
        bytes_.push_back(samples == 0
                             ? 0
                             : static_cast<uint64_t>(static_cast<unsigned __int128>(bytes) *
                                                     std::min(own, samples) / samples));
    }
    const uint64_t elements = dealing.elements();
    left_out_ = dealing.samples - std::min(elements, dealing.samples);
    repeated_ = elements - std::min(elements, dealing.samples);
}

// As Plan::even_samples() has it: what the smallest or the largest part has, for everybody.
void PlanReport::make_even() {
    const Range range = samples_each();
    const uint64_t even = options_.even == Even::drop ? range.least : range.most;
    for (uint64_t& samples : samples_) {
        add(left_out_, samples - std::min(samples, even));
        add(repeated_, even - std::min(samples, even));
        samples = even;
    }
}

// Shard j of the permuted list belongs to lane j mod L, and that one to the consumers of group j
// mod G.
uint64_t PlanReport::shards_of(uint64_t consumer) const {
    if (options_.by_index) return known_.count;
    const uint64_t groups = plan_.lane_readers().groups(), group = consumer % groups;
    if (options_.resample) return plan_.lanes() / groups * plan_.shards_of(0);
    return group >= known_.count ? 0 : rounded_up(known_.count - group, groups);
}

PlanReport::Share PlanReport::share(uint64_t consumer) const {
    Share share{.rank = consumer / options_.num_workers,
                .worker = consumer % options_.num_workers,
                .lanes = plan_.lanes() / (options_.by_index ? 1 : plan_.lane_readers().groups()),
                .shards = shards_of(consumer),
                .samples = unknown,
                .bytes = unknown};
    if (options_.epoch_samples != 0) {
        share.samples = plan_.quota(options_.epoch_samples, consumer);
    } else if (!samples_.empty()) {
        share.samples = samples_[static_cast<size_t>(consumer)];
        if (!known_.bytes.empty()) share.bytes = bytes_[static_cast<size_t>(consumer)];
    }
    return share;
}

// The first consumer never has fewer than the last one.
PlanReport::Range PlanReport::shards_each() const {
    Range range;
    range.add(shards_of(0));
    range.add(shards_of(consumers() - 1));
    return range;
}

// `most` is 0 and `least` unknown when they are not known.
PlanReport::Range PlanReport::samples_each() const {
    Range range;
    if (options_.epoch_samples != 0) {
        range.add(plan_.quota(options_.epoch_samples, 0));
        range.add(plan_.quota(options_.epoch_samples, consumers() - 1));
    }
    for (const uint64_t samples : samples_) range.add(samples);
    return range;
}

std::vector<ShardRead> PlanReport::reads(uint64_t consumer) const {
    if (options_.by_index)
        throw Error(SHF_E_USAGE, "by_index reads samples, and no shards from front to back",
                    "leave out by_index");
    if (counts_.empty())
        throw Error(SHF_E_USAGE,
                    "what is read when is not known: " +
                        (known_.unknown.empty() ? "a shard has too many samples" : known_.unknown),
                    "make indexes, or give the numbers of samples");
    Options own = options_;
    own.rank = consumer / options_.num_workers;
    own.worker = consumer % options_.num_workers;
    return reads_of_consumer(own, counts_);
}

// ---- Warnings -----------------------------------------------------------------------------------

void PlanReport::warn(const std::string& cause, const std::string& help) {
    warnings_.push_back(cause + "; help: " + help);
}

void PlanReport::warn_of_parts() {
    if (options_.epoch_samples != 0 || options_.even != Even::none || plan_.idle_consumers())
        return;
    const bool known = !samples_.empty();
    const Range range = known ? samples_each() : shards_each();
    if (options_.by_index) {
        // By a sample, and the workers of a rank by a batch.
        if (known && sum_of(samples_) % options_.world_size != 0)
            warn(
                "some ranks have a sample more than others, and may wait for them at the end of "
                "an epoch",
                "set even=drop or even=pad");
        return;
    }
    if (range.least == range.most || (known && !apart(range.least, range.most))) return;
    warn("the parts of the consumers are unequal: " +
             counted(range.least, range.most, known ? "sample" : "shard") +
             " each; those with less end their epoch first, and may leave the others waiting for "
             "them",
         "set even=drop or even=pad, give epoch_samples, or write equal shards, a multiple of " +
             std::to_string(consumers()) + " of them");
}

// What no stream with the option even can be opened with.
void PlanReport::warn_of_even() {
    if (options_.even == Even::none && !options_.by_index) return;
    if (known_.needs_index)
        warn(
            std::string(options_.by_index ? "by_index" : "even") +
                " needs the index of every shard, and the stream would not open: " + known_.unknown,
            "read the shards once with the option write_index=true, or open them as a dataset, "
            "which makes it");
    if (options_.by_index) {
        const uint64_t samples = sum_of(known_.samples);
        if (!known_.samples.empty() && options_.even != Even::none &&
            Dealing(options_, samples).elements() < options_.world_size)
            warn(counted(samples, "sample") + " for " + counted(options_.world_size, "rank") +
                     ", and the stream would not open",
                 "give more shards, or use fewer ranks");
        return;
    }
    const auto none = std::find(samples_.begin(), samples_.end(), uint64_t{0});
    if (none != samples_.end() && !plan_.idle_consumers())
        warn("consumer " + std::to_string(none - samples_.begin()) + " has no sample in epoch " +
                 std::to_string(options_.epoch) + ", and the stream would not open",
             "write more shards, or use fewer ranks and workers");
    if (!samples_.empty()) make_even();
}

void PlanReport::warn_of_shuffle() {
    if (options_.shuffle <= 1) {
        if (options_.epochs != 1 && !options_.shuffle_shards && !options_.resample)
            warn("nothing is shuffled: the samples have the same order in every epoch",
                 "set shuffle_shards=true and shuffle=N, for example 1000");
        return;
    }
    if (known_.samples.empty()) return;
    const uint64_t mean = sum_of(known_.samples) / known_.count;
    if (options_.shuffle < mean)
        warn("shuffle=" + std::to_string(options_.shuffle) +
                 " is smaller than a shard, which has " + counted(mean, "sample") +
                 " on average: samples that are neighbours there stay near each other",
             "set shuffle=" + std::to_string(mean) +
                 " or more, or write samples into the shards in random order");
}

void PlanReport::warn_of_lanes() {
    if (const uint64_t readers = plan_.lane_readers().readers(); readers > 1 && !options_.by_index)
        warn("lanes=" + std::to_string(plan_.lanes()) +
                 " is not a multiple of the consumers: " + std::to_string(readers) +
                 " of them read each lane, and each keeps its own samples of it",
             "set lanes to a multiple of " + std::to_string(consumers()) +
                 ", unless a state with these lanes is to be restored");
    constexpr uint64_t usual = 64, most_lanes = 65536;  // the latter: range of the option
    if (options_.lanes != 0 || options_.world_size == 1 || consumers() > most_lanes) return;
    uint64_t lanes = consumers();
    while (lanes * 2 <= std::min(usual, known_.count)) lanes *= 2;
    const bool by_index = options_.by_index;
    warn(std::string("lanes is not set, so that the order depends on the number of ranks") +
             (by_index ? "" : " and workers") +
             ", and a saved state can only be restored on as many",
         std::string("set lanes to a number ") + (by_index ? "" : "that they divide, ") +
             "the same in every run, for example lanes=" + std::to_string(lanes));
}

void PlanReport::warn_of_memory() {
    const uint64_t all = sum_of(known_.samples);
    // With by_index they hold numbers.
    if (options_.shuffle <= 1 || all == 0 || options_.by_index) return;
    // A buffer holds no more than its lane has in an epoch.
    const uint64_t lanes = plan_.lanes() / plan_.lane_readers().groups();
    const uint64_t buffer = std::min(options_.shuffle, rounded_up(all, plan_.lanes()));
    const double mean = static_cast<double>(sum_of(known_.bytes)) / static_cast<double>(all);
    const double need = mean * static_cast<double>(buffer) * static_cast<double>(lanes);
    if (need <= static_cast<double>(options_.memory)) return;
    const auto bytes = [](double value) {
        return size(static_cast<uint64_t>(std::min(value, 1e18)));
    };
    warn("the shuffle buffers of a consumer need about " + bytes(need) + " (" +
             counted(lanes, "lane") + ", " + counted(buffer, "sample") + " each, " + bytes(mean) +
             " a sample), and memory is " + size(options_.memory) +
             ": the stream would end with LIMIT",
         "raise memory, lower shuffle, or use fewer lanes");
}

// ---- Text ---------------------------------------------------------------------------------------

void PlanReport::write() {
    const auto line = [&](const std::string& text) { text_ += text + "\n"; };
    const std::string reason = known_.unknown.empty() ? "too many consumers" : known_.unknown;
    line(counted(known_.count, "shard") + ", " + counted(consumers(), "consumer") + " (" +
         counted(options_.world_size, "rank") + " x " + counted(options_.num_workers, "worker") +
         "), " + counted(plan_.lanes(), "lane"));
    const Range shards_range = shards_each(), samples_range = samples_each();
    if (options_.epoch_samples != 0)
        line("an epoch: " + counted(options_.epoch_samples, "sample") +
             ", going on in the shards where the last one stopped");
    else
        line("an epoch: " +
             (options_.resample
                  ? counted(plan_.lanes() * plan_.shards_of(0), "shard") + " drawn with replacement"
                  : counted(known_.count, "shard")) +
             (samples_.empty() ? "; samples are not known: " + reason
                               : ", " + counted(sum_of(samples_), "sample") +
                                     (known_.bytes.empty() ? "" : ", " + size(sum_of(bytes_)))) +
             (left_out_ > 0 ? ", even=drop leaves out " + number(left_out_) : "") +
             (repeated_ > 0 ? ", even=pad repeats " + number(repeated_) : ""));
    if (consumers() > 1)
        line("each consumer: " + counted(shards_range.least, shards_range.most, "shard") +
             (options_.epoch_samples != 0 ? " in a pass" : "") +
             (samples_range.least == unknown
                  ? ""
                  : ", " + counted(samples_range.least, samples_range.most, "sample")));

    constexpr uint64_t first = 8;  // and the last one
    for (uint64_t consumer = 0; consumer < consumers(); ++consumer) {
        if (consumer == first && consumers() > first + 2) {
            line("... " + number(consumers() - first - 1) + " more like these");
            consumer = consumers() - 1;
        }
        const Share part = share(consumer);
        line("rank " + std::to_string(part.rank) + " worker " + std::to_string(part.worker) + ": " +
             counted(part.lanes, "lane") + ", " + counted(part.shards, "shard") +
             (part.samples == unknown ? "" : ", " + counted(part.samples, "sample")) +
             (part.bytes == unknown ? "" : ", " + size(part.bytes)));
    }
    for (const std::string& warning : warnings_) line("warning: " + warning);
}

}  // namespace shf
