#include "dataset/dataset.h"

#include "batch/sample_batch.h"
#include "core/error.h"
#include "core/parallel.h"
#include "io/each_shard.h"
#include "url/in_shard.h"

#include <algorithm>
#include <array>
#include <exception>
#include <optional>
#include <string>
#include <utility>

namespace shf {

namespace {

// Memory of samples that were released, for the next ones; more when many are asked for at once.
constexpr uint64_t usually_kept = 64 << 20;

}  // namespace

Dataset::Dataset(std::span<const char* const> urls, const Options& options)
    : options_(options),
      fields_(options.fields),
      memory_(Recycler::make(std::min(options.memory / 4, usually_kept), options.memory)),
      stretches_(options.memory / 4),
      context_{options_, fields_, cancel_, sources_, budget_, scratches_, *memory_, stretches_},
      urls_(sources_.list(urls)),
      first_{0} {
    if (urls_.size() == 0) throw Error(SHF_E_USAGE, "no shards", "give at least one URL");
    shards_.resize(static_cast<size_t>(urls_.size()));
    for_each_shard(urls_, options_, cancel_, [&](uint64_t number, const std::string& url) {
        shards_[number] = open_dataset_shard(url, number, context_);
        add_names(*shards_[number]);
    });
    for (const auto& shard : shards_) first_.push_back(first_.back() + shard->samples());
}

// All of them are in memory as long as the dataset is open. Several threads.
void Dataset::add_names(const DatasetShard& shard) {
    const uint64_t size = names_size_.fetch_add(shard.names_size()) + shard.names_size();
    const uint64_t samples = named_.fetch_add(shard.samples()) + shard.samples();
    if (size > options_.memory)
        throw Error(SHF_E_LIMIT,
                    "the names of " + plural(samples, "sample") + " take " + plural(size, "byte") +
                        ", more than memory=" + std::to_string(options_.memory),
                    "raise memory, or open fewer shards at once");
}

Dataset::~Dataset() {
    delete keys_.load(std::memory_order_relaxed);
}

Dataset::Place Dataset::place(size_t number) const {
    const auto after = std::upper_bound(first_.begin(), first_.end(), number);
    const auto shard = static_cast<size_t>(after - first_.begin()) - 1;
    return {shard, first_[shard]};
}

std::string_view Dataset::name(size_t number) const {
    const Place at = place(number);
    return shards_[at.shard]->key(number - at.first);
}

Sample* Dataset::get(size_t number) const {
    const Place at = place(number);
    try {
        BlockRef block = shards_[at.shard]->read(number - at.first);
        return &block.release()->samples[0];
    } catch (const Error& error) {
        // The URL is made from the list, and so only when it is needed.
        return in_shard(urls_.at(at.shard), [&]() -> Sample* { throw Error(error); });
    }
}

namespace {

// A wish for a sample, and its place among the wishes.
using Wish = std::pair<uint64_t, size_t>;

// A run is long enough to be worth its price, and short enough to leave some to other threads.
constexpr size_t most_wishes = 32;
constexpr uint64_t enough_bytes = 128 * 1024;

}  // namespace

// Neighbours in one shard, which one thread reads.
struct Dataset::Run {
    size_t shard, first;  // the number of the shard's first sample
    std::span<const Wish> wishes;
    size_t bad = 0;  // the place of the wish that failed
};

// Runs that one thread reads, one after another.
struct Dataset::RunGroup {
    size_t first, last;  // behind the last one
    size_t bad = 0;
};

void Dataset::get_many(std::span<const uint64_t> numbers, std::span<Sample*> samples) const {
    std::fill(samples.begin(), samples.end(), nullptr);
    // In the order of the files: neighbours share pages, and disks seek less.
    std::vector<Wish> order;
    order.reserve(numbers.size());
    for (size_t i = 0; i < numbers.size(); ++i) order.emplace_back(numbers[i], i);
    std::sort(order.begin(), order.end());
    std::vector<Run> runs;
    uint64_t bytes = 0;
    for (size_t i = 0, shard = 0; i < order.size();) {
        const auto number = static_cast<size_t>(order[i].first);
        if (number >= first_[shard + 1]) shard = place(number).shard;
        const size_t from = i;
        uint64_t together = 0;
        for (; i < order.size() && order[i].first < first_[shard + 1] && i - from < most_wishes &&
               together < enough_bytes;
             ++i)
            together += std::min<uint64_t>(
                shards_[shard]->bytes(static_cast<size_t>(order[i].first) - first_[shard]),
                uint64_t{1} << 40);
        bytes += together;
        runs.push_back(
            {shard, first_[shard], std::span<const Wish>(order).subspan(from, i - from)});
    }
    std::vector<RunGroup> groups = groups_of(runs);
    memory_->expect(bytes);
    try {
        run_jobs(
            groups.size(), 1, options_.threads, bytes,
            [&](size_t i) { get_group(groups[i], runs, samples); },
            [&groups](size_t i) { return groups[i].bad; });
    } catch (const Error&) {
        for (Sample*& sample : samples)
            if (Sample* gone = std::exchange(sample, nullptr)) gone->block->unref();
        throw;
    }
}

std::vector<Dataset::RunGroup> Dataset::groups_of(std::span<const Run> runs) const {
    const auto stretch = [this](const Run& run) {
        return shards_[run.shard]->stretch(static_cast<size_t>(run.wishes[0].first) - run.first);
    };
    std::vector<RunGroup> groups;
    for (size_t i = 0; i < runs.size(); ++i)
        if (i > 0 && runs[i].shard == runs[i - 1].shard && stretch(runs[i]) == stretch(runs[i - 1]))
            groups.back().last = i + 1;
        else
            groups.push_back({i, i + 1});
    return groups;
}

void Dataset::get_group(RunGroup& group, std::span<Run> runs, std::span<Sample*> samples) const {
    std::exception_ptr failure;
    for (Run& run : runs.subspan(group.first, group.last - group.first)) {
        try {
            get_run(run, samples);
        } catch (...) {
            if (failure && group.bad < run.bad) continue;
            group.bad = run.bad;
            failure = std::current_exception();
        }
    }
    if (failure) std::rethrow_exception(failure);
}

void Dataset::get_run(Run& run, std::span<Sample*> samples) const {
    std::array<size_t, most_wishes> wanted;
    std::array<Sample*, most_wishes> got;
    size_t count = 0;
    for (const auto& [number, place] : run.wishes)
        if (const size_t sample = static_cast<size_t>(number) - run.first;
            count == 0 || wanted[count - 1] != sample)
            wanted[count++] = sample;
    try {
        shards_[run.shard]->read(std::span(wanted).first(count), std::span(got).first(count));
    } catch (const std::exception&) {
        // One after another, to tell which one it was.
        std::optional<Fault> fault;
        for (const auto& [number, place] : run.wishes) {
            try {
                samples[place] = get(static_cast<size_t>(number));
            } catch (...) {
                if (fault && run.bad < place) continue;
                run.bad = place;
                fault = describe_exception();
            }
        }
        if (fault) throw Error(std::move(*fault));
        return;
    }
    size_t at = 0;
    for (size_t i = 0; i < run.wishes.size(); ++i) {
        const bool again = i > 0 && run.wishes[i].first == run.wishes[i - 1].first;
        if (again) got[at - 1]->block->ref();
        samples[run.wishes[i].second] = again ? got[at - 1] : got[at++];
    }
}

BatchRef Dataset::get_batch(std::span<const uint64_t> numbers, const Options* options) const {
    std::vector<Sample*> samples(numbers.size());
    std::vector<BlockRef> kept;  // each sample has a reference of its own
    kept.reserve(numbers.size());
    get_many(numbers, samples);
    for (const Sample* sample : samples) kept.emplace_back(sample->block);
    return make_batch(samples, options ? *options : options_, [this](uint64_t bytes) {
        return memory_->acquire(static_cast<size_t>(bytes));
    });
}

const NameTable& Dataset::keys() const {
    if (const NameTable* table = keys_.load(std::memory_order_acquire)) return *table;
    const Names& names = *this;
    if (const uint64_t size = NameTable::size_for(count()); size > options_.memory)
        throw Error(SHF_E_LIMIT,
                    "the table of " + plural(count(), "key") + " takes " + plural(size, "byte") +
                        ", more than memory=" + std::to_string(options_.memory),
                    "raise memory, or ask for samples by number");
    auto fresh = std::make_unique<const NameTable>(names, sample_words);
    const NameTable* other = nullptr;
    if (keys_.compare_exchange_strong(other, fresh.get(), std::memory_order_acq_rel))
        return *fresh.release();
    return *other;  // another thread was faster
}

size_t Dataset::find(std::string_view key) const {
    return keys().find(key);
}

}  // namespace shf
