#include "stream/indexed_refill.h"

#include "core/options.h"
#include "index/sample_starts.h"
#include "url/redact.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

namespace shf {

namespace {

// Read one header past the sample; finding it proves that the sample is complete.
constexpr uint64_t next_header = 512;

// Takes the samples of a reading that waits for nobody.
class Receiver final : public SampleSink {
  public:
    explicit Receiver(std::function<void(BlockRef)> take) : take_(std::move(take)) {}

  private:
    void deliver(BlockRef block) override { take_(std::move(block)); }
    void bad_sample(Fault fault, bool) override { throw Error(std::move(fault)); }

    const std::function<void(BlockRef)> take_;
};

}  // namespace

struct IndexedRefill::Opened {
    size_t number;
    std::shared_ptr<Origin> origin;
    std::string url;
    std::unique_ptr<Source> source;
    std::optional<SampleStarts> starts;
};

IndexedRefill::IndexedRefill(LaneContext& context, uint64_t epoch, uint32_t lane,
                             std::vector<Shard> shards)
    : context_(context), epoch_(epoch), lane_(lane), shards_(std::move(shards)) {
    size_t count = 0;
    for (const Shard& shard : shards_) {
        first_.push_back(count);
        count += shard.resume.wanted.size();
    }
    blocks_.resize(count);
    taken_.resize(count);
}

IndexedRefill::~IndexedRefill() = default;

std::unique_ptr<IndexedRefill::Opened> IndexedRefill::open(size_t number,
                                                           const Cancel& cancel) const {
    const Shard& shard = shards_[number];
    auto opened = std::make_unique<Opened>();
    opened->number = number;
    opened->origin = context_.origin(epoch_, lane_);
    opened->source =
        open_shard(context_, shard.nth, &shard.resume, cancel, *opened->origin, opened->url);
    return opened;
}

void IndexedRefill::read_into(SampleSink& sink, const Opened& from, const Resume& resume,
                              const Cancel& cancel, uint64_t expected) {
    SampleReader(*from.source, from.origin, {context_.options, *context_.pool, cancel, uncounted_},
                 sink,
                 {.filter = context_.filter.all() ? nullptr : &context_.filter,
                  .resume = &resume,
                  .single_samples = true,
                  .expected = expected})
        .read();
}

// ---- The thread that reads all ------------------------------------------------------------------

void IndexedRefill::read() noexcept {
    try {
        for (size_t i = 0; i < shards_.size(); ++i) read_shard(i);
    } catch (...) {  // take() comes to it as well, with the sample that it concerns
    }
}

void IndexedRefill::read_shard(size_t number) {
    const Shard& shard = shards_[number];
    const auto opened = open(number, cancel_);
    size_t place = first_[number];
    bool room = true;
    Receiver receiver([&](BlockRef block) {
        room = room && keep(place++, std::move(block));
        if (!room) throw Error(SHF_E_CANCELLED, "the shuffle buffers are full");
    });
    read_into(receiver, *opened, shard.resume, cancel_, 0);
}

// False when there is no more memory for samples before their turn.
bool IndexedRefill::keep(size_t place, BlockRef block) {
    const uint64_t bytes = block->memory();
    const std::lock_guard lock(mutex_);
    cancel_.check();
    if (taken_[place]) return true;
    const uint64_t all = context_.shuffle_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (all > context_.options.memory) {
        context_.shuffle_bytes.fetch_sub(bytes, std::memory_order_relaxed);
        return false;
    }
    blocks_[place] = std::move(block);
    return true;
}

void IndexedRefill::cancel() {
    std::vector<BlockRef> unwanted;
    const std::lock_guard lock(mutex_);
    cancel_.request();
    unwanted.swap(blocks_);
    for (const BlockRef& block : unwanted)
        if (block) context_.shuffle_bytes.fetch_sub(block->memory(), std::memory_order_relaxed);
}

// ---- Consumer -----------------------------------------------------------------------------------

BlockRef IndexedRefill::take(size_t place) {
    const auto after = std::upper_bound(first_.begin(), first_.end(), place);
    const auto shard = static_cast<size_t>(after - first_.begin()) - 1;
    {
        const std::lock_guard lock(mutex_);
        cancel_.check();
        if (blocks_[place]) return std::move(blocks_[place]);
        taken_[place] = true;
    }
    BlockRef block = read_alone(shard, shards_[shard].resume.wanted[place - first_[shard]]);
    context_.shuffle_bytes.fetch_add(block->memory(), std::memory_order_relaxed);
    return block;
}

BlockRef IndexedRefill::read_alone(size_t shard, uint64_t number) {
    try {
        if (!opened_ || opened_->number != shard) {
            opened_ = open(shard, context_.cancel);
            opened_->starts = SampleStarts::find(opened_->url, *opened_->source, context_.options,
                                                 context_.filter);
        }
        Resume resume = shards_[shard].resume;
        resume.wanted = {number};
        uint64_t bytes = 0;
        // Without a good index it takes longer: from where the state says.
        if (const auto& starts = opened_->starts; starts && starts->fits(resume.position.from))
            if (const auto offset = starts->offset(number)) {
                resume.position.from = {*offset, number};
                bytes = starts->bytes(number) + next_header;
            }
        BlockRef found;
        Receiver receiver([&](BlockRef block) { found = std::move(block); });
        read_into(receiver, *opened_, resume, context_.cancel, bytes);
        if (!found) throw fewer_samples();
        return found;
    } catch (const Error& error) {
        Fault fault = error.fault();
        fault.shard =
            redact(context_.shards.at(context_.plan.shard(epoch_, lane_, shards_[shard].nth)));
        throw Error(std::move(fault));
    }
}

}  // namespace shf
