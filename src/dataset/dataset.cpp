#include "dataset/dataset.h"

#include "core/error.h"
#include "dataset/parallel.h"
#include "dataset/sample_batch.h"
#include "io/in_shard.h"

#include <algorithm>
#include <string>
#include <utility>

namespace shf {

namespace {

// Memory of samples that were released, for the next ones.
constexpr uint64_t most_kept = 64 << 20;

}  // namespace

Dataset::Dataset(std::span<const char* const> urls, const Options& options)
    : options_(options),
      memory_(Recycler::make(std::min(options.memory / 4, most_kept))),
      context_{options_, cancel_, budget_, scratches_, *memory_},
      urls_(urls, options_),
      first_{0} {
    if (urls_.size() == 0) throw Error(SHF_E_USAGE, "no shards", "give at least one URL");
    for (uint64_t i = 0; i < urls_.size(); ++i) {
        const std::string url = urls_.at(i);
        shards_.push_back(in_shard(url, [&] { return open_dataset_shard(url, i, context_); }));
        first_.push_back(first_.back() + shards_.back()->samples());
    }
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

void Dataset::get_many(std::span<const uint64_t> numbers, std::span<Sample*> samples) const {
    std::fill(samples.begin(), samples.end(), nullptr);
    // In the order of the files: neighbours share pages, and disks seek less.
    std::vector<std::pair<uint64_t, size_t>> order;
    order.reserve(numbers.size());
    uint64_t bytes = 0;
    for (size_t i = 0; i < numbers.size(); ++i) {
        const Place at = place(static_cast<size_t>(numbers[i]));
        const auto sample = static_cast<size_t>(numbers[i]) - at.first;
        order.emplace_back(numbers[i], i);
        bytes += std::min<uint64_t>(shards_[at.shard]->bytes(sample), uint64_t{1} << 40);
    }
    std::sort(order.begin(), order.end());
    try {
        run_jobs(
            order.size(), options_.threads, bytes,
            [&](size_t i) { samples[order[i].second] = get(static_cast<size_t>(order[i].first)); },
            [&order](size_t i) { return order[i].second; });
    } catch (const Error&) {
        for (Sample*& sample : samples)
            if (Sample* gone = std::exchange(sample, nullptr)) gone->block->unref();
        throw;
    }
}

BatchRef Dataset::get_batch(std::span<const uint64_t> numbers) const {
    std::vector<Sample*> samples(numbers.size());
    get_many(numbers, samples);
    std::vector<BlockRef> kept;  // each sample has a block of its own
    for (const Sample* sample : samples) kept.emplace_back(sample->block);
    return make_batch(samples, options_, [this](uint64_t bytes) {
        return memory_->acquire(static_cast<size_t>(bytes));
    });
}

const NameTable& Dataset::keys() const {
    if (const NameTable* table = keys_.load(std::memory_order_acquire)) return *table;
    const Names& names = *this;
    auto fresh = std::make_unique<const NameTable>(names, "there is no sample with this key");
    const NameTable* other = nullptr;
    if (keys_.compare_exchange_strong(other, fresh.get(), std::memory_order_acq_rel))
        return *fresh.release();
    return *other;  // another thread was faster
}

size_t Dataset::find(std::string_view key) const {
    return keys().find(key);
}

}  // namespace shf
