#include "cli/plan_simulation.h"

#include "cli/terminal.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <random>
#include <sstream>
#include <utility>

namespace cli {

namespace {

constexpr uint64_t not_known = std::numeric_limits<uint64_t>::max();
// A few bytes for each are held.
constexpr uint64_t most_planned_shards = 100'000'000, most_planned_samples = 1'000'000'000'000;

// A number of the list; false: it is none.
bool read_count(const std::string& word, uint64_t& count) {
    if (word.size() > 18 || word.find_first_not_of("0123456789") != std::string::npos) return false;
    count = std::stoull(word);
    return true;
}

// "12.3 %"
std::string percent(uint64_t part, uint64_t whole) {
    std::array<char, 32> text{};
    const double value =
        whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
    std::snprintf(text.data(), text.size(), "%.1f %%", value);
    return text.data();
}

}  // namespace

void PlannedShards::declare(Arguments& arguments) {
    arguments
        .add_option("--shards", shards_,
                    "plan so many shards that are made up, instead of those of URLs")
        .type_name("N");
    arguments.add_option("--samples-per-shard", samples_, "of shards that are made up, on average")
        .type_name("N");
    arguments
        .add_option("--spread", spread_,
                    "how far their samples are from that, evenly spread: 0.2 is 20 % less to 20 % "
                    "more")
        .type_name("0..1");
    arguments.add_option("--sample-bytes", sample_bytes_, "bytes of each of their samples")
        .type_name("N");
    arguments.add_option("--made-up-seed", made_up_seed_, "chooses the numbers that are made up")
        .type_name("N");
    arguments
        .add_option(
            "--counts", counts_file_,
            "plan the shards of this list instead: NAME SAMPLES BYTES on each line, or NAME "
            "SAMPLES; - is standard input")
        .type_name("FILE");
}

PlannedShards::Counts PlannedShards::made_up() const {
    if (shards_ > most_planned_shards || samples_ > most_planned_samples ||
        !(spread_ >= 0 && spread_ <= 1))
        throw Failure(wrong_command_line,
                      "more shards or samples than can be planned, or a spread that is none; help: "
                      "at most " +
                          count_text(most_planned_shards) + " shards, and --spread 0 to 1");
    Counts counts;
    std::mt19937_64 random(made_up_seed_);
    const auto half = static_cast<uint64_t>(std::llround(static_cast<double>(samples_) * spread_));
    for (uint64_t shard = 0; shard < shards_; ++shard) {
        // The numbers are the same everywhere, which those of a distribution of C++ need not be.
        counts.samples.push_back(samples_ - half + random() % (2 * half + 1));
        uint64_t bytes = 0;
        if (__builtin_mul_overflow(counts.samples.back(), sample_bytes_, &bytes))
            throw Failure(wrong_command_line,
                          "a shard of more bytes than there are; help: lower --sample-bytes");
        counts.bytes.push_back(bytes);
    }
    return counts;
}

PlannedShards::Counts PlannedShards::of_file() const {
    std::ifstream file;
    const bool standard_input = counts_file_ == "-";
    if (!standard_input) file.open(counts_file_);
    std::istream& input = standard_input ? std::cin : file;
    Counts counts;
    uint64_t number = 0;
    for (std::string text; std::getline(input, text);) {
        ++number;
        std::istringstream line(text);
        const std::vector<std::string> words{std::istream_iterator<std::string>(line), {}};
        if (words.empty()) continue;
        const bool sized = words.size() == 3;
        uint64_t samples = 0, bytes = 0;
        const bool good = (sized || words.size() == 2) && read_count(words[1], samples) &&
                          (!sized || read_count(words[2], bytes)) &&
                          (counts.samples.empty() || sized == !counts.bytes.empty());
        if (!good)
            throw Failure(failed,
                          counts_file_ + ": line " + std::to_string(number) +
                              " is no NAME SAMPLES BYTES; help: write a name without blanks "
                              "and whole numbers, bytes on all lines or on none");
        if (counts.samples.size() == most_planned_shards)
            throw Failure(failed, counts_file_ + ": more than " + count_text(most_planned_shards) +
                                      " shards; help: plan a part of them");
        counts.samples.push_back(samples);
        if (sized) counts.bytes.push_back(bytes);
    }
    if (input.bad() || (!standard_input && !file.eof()) || counts.samples.empty())
        throw Failure(failed,
                      counts_file_ + ": no shards; help: NAME SAMPLES BYTES on a line for each");
    return counts;
}

PlannedShards::Counts PlannedShards::counts() const {
    if (shards_ > 0 && !counts_file_.empty())
        throw Failure(wrong_command_line, "--shards and --counts; help: give one of them");
    return shards_ > 0 ? made_up() : of_file();
}

Plan PlannedShards::plan(const shf_options* options) const {
    const Counts planned = counts();
    shf_plan* made = nullptr;
    call(shf_plan_simulate, &made, planned.samples.data(),
         planned.bytes.empty() ? nullptr : planned.bytes.data(), planned.samples.size(), options);
    return Plan(made);
}

// ---- Summary ------------------------------------------------------------------------------------

PlanSummary::PlanSummary(const shf_plan* plan) : consumers_(shf_plan_consumer_count(plan)) {
    constexpr std::array<std::pair<const char*, int32_t>, 3> properties = {
        {{"shards", SHF_PLAN_SHARDS}, {"samples", SHF_PLAN_SAMPLES}, {"bytes", SHF_PLAN_BYTES}}};
    for (const auto& [name, what] : properties) {
        std::vector<uint64_t> values;
        for (uint64_t i = 0; i < consumers_; ++i) values.push_back(shf_plan_info(plan, i, what));
        if (values.empty() || values[0] == not_known) continue;
        std::sort(values.begin(), values.end());
        Parts parts{.name = name,
                    .least = values.front(),
                    .median = values[values.size() / 2],
                    .most = values.back()};
        for (const uint64_t value : values) {
            parts.sum += value;
            if (what != SHF_PLAN_SAMPLES) continue;
            above_least_ += value - parts.least;
            below_most_ += parts.most - value;
        }
        parts_.push_back(parts);
    }
}

std::string PlanSummary::text() const {
    std::string made;
    for (const Parts& parts : parts_)
        made += std::string(parts.name) + " of a consumer: " + count_text(parts.least) + " to " +
                count_text(parts.most) + ", median " + count_text(parts.median) +
                "; the most has " + percent(parts.most - parts.median, parts.median) +
                " more than the median, the least " +
                percent(parts.median - parts.least, parts.median) + " less\n";
    const auto samples = std::find_if(parts_.begin(), parts_.end(), [](const Parts& parts) {
        return std::string_view(parts.name) == "samples";
    });
    if (samples != parts_.end() && above_least_ > 0)
        made += "even=drop leaves out " + count_text(above_least_) + " samples (" +
                percent(above_least_, samples->sum) + "), even=pad repeats " +
                count_text(below_most_) + " (" + percent(below_most_, samples->sum) + ")\n";
    return made;
}

Json PlanSummary::json() const {
    Json made;
    for (const Parts& parts : parts_)
        made[parts.name] = {{"min", parts.least}, {"median", parts.median}, {"max", parts.most}};
    made["even_drop_leaves_out"] = above_least_;
    made["even_pad_repeats"] = below_most_;
    return made;
}

std::vector<uint64_t> reads_of(const shf_plan* plan, uint64_t consumer) {
    constexpr size_t numbers = 4;
    std::vector<uint64_t> reads;
    size_t count = 0, room = 0;
    do {
        room = std::max(count, size_t{256});
        reads.resize(room * numbers);
        call(shf_plan_reads, plan, consumer, reads.data(), room, &count);
    } while (count > room);
    reads.resize(count * numbers);
    return reads;
}

}  // namespace cli
