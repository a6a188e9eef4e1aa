#include "stream/numbered_shards.h"

#include "core/opening.h"
#include "core/options.h"
#include "io/descriptor.h"
#include "url/in_shard.h"

#include <algorithm>
#include <string>
#include <utility>

namespace shf {

namespace {

// The least number of shards that stay open, whatever their indexes take.
constexpr size_t least_open = 16;
constexpr uint64_t most_recycled = 64 << 20;

}  // namespace

NumberedShards::NumberedShards(LaneContext& context, uint32_t lane)
    : context_(context),
      lane_(lane),
      fields_(context.options.fields),
      memory_(Recycler::make(std::min(context.options.memory / 4, most_recycled))),
      stretches_(context.options.memory / 4),
      dataset_{context.options, fields_,    context.cancel, context.sources,
               budget_,         scratches_, *memory_,       stretches_} {}

NumberedShards::~NumberedShards() = default;

std::shared_ptr<const NumberedShards::Shard> NumberedShards::open(uint64_t number, uint64_t epoch) {
    std::shared_ptr<Place> place;
    {
        const std::lock_guard lock(mutex_);
        if (const auto known = places_.find(number); known != places_.end()) {
            place = known->second;
            used_.splice(used_.begin(), used_, place->use);
        } else {
            place = std::make_shared<Place>();
            std::list<uint64_t> use{number};
            place->use = use.begin();
            places_.emplace(number, place);
            used_.splice(used_.begin(), use);  // last, since it cannot fail
        }
    }
    const std::lock_guard opening(place->mutex);
    if (place->fault && place->fault_epoch == epoch) throw Error(*place->fault);
    if (!place->shard) {
        try {
            place->shard = make(number);
        } catch (const Error& error) {
            // It was tried as often as it should be: not once more for each of its samples.
            if (!lacks_descriptor(error) && !ends_call(error.code())) {
                place->fault = error.fault();
                place->fault_epoch = epoch;
            }
            throw;
        }
        close_others(number, place->shard->memory());
    }
    return place->shard;
}

NumberedShards::Shard::Shard(LaneContext& context, uint32_t lane, uint64_t number)
    : context_(context),
      lane_(lane),
      number_(number),
      url_(context.shards.at(number)),
      shown_(redact(url_)) {}

std::shared_ptr<const NumberedShards::Shard> NumberedShards::make(uint64_t number) const {
    auto shard = std::make_shared<Shard>(context_, lane_, number);
    in_shard(shard->url_, [&] {
        // A number of its own: what is kept of a compressed shard must not meet it when it is
        // opened again.
        shard->samples_ = open_dataset_shard(shard->url_, opened_.fetch_add(1), dataset_);
        const SampleFilter& filter = context_.filter;
        shard->all_ = filter.all();
        const DatasetShard& samples = *shard->samples_;
        for (size_t i = 0; !shard->all_ && i < samples.samples(); ++i)
            if (filter.wants(i, std::string(samples.key(i)), samples.schema(i)))
                shard->wanted_.push_back(i);
        const uint64_t count = shard->all_ ? samples.samples() : shard->wanted_.size();
        if (count != context_.plan.count_of(number))
            throw Error(SHF_E_CHANGED, "the shard was changed after the stream was opened",
                        "open the stream again");
    });
    return shard;
}

// After shard `number` was opened: closes those that were not used for the longest time, as far as
// memory asks for it.
void NumberedShards::close_others(uint64_t number, uint64_t added) {
    std::vector<std::shared_ptr<Place>> unused;  // closed without the lock
    const std::lock_guard lock(mutex_);
    memory_used_ += added;
    for (auto oldest = used_.end(); oldest != used_.begin() && used_.size() > least_open &&
                                    memory_used_ > context_.options.memory / 4;) {
        --oldest;
        if (*oldest == number) continue;
        const auto place = places_.find(*oldest);
        // Another thread opens it or reads from it.
        const std::unique_lock opening(place->second->mutex, std::try_to_lock);
        const auto& shard = place->second->shard;
        if (!opening.owns_lock() || shard.use_count() > 1) continue;
        if (shard) memory_used_ -= shard->memory();
        unused.push_back(place->second);
        places_.erase(place);
        oldest = used_.erase(oldest);
    }
}

// Of its index, about: names, and some numbers for each sample and member.
uint64_t NumberedShards::Shard::memory() const {
    return samples_->names_size() + 64 * uint64_t{samples_->samples()};
}

size_t NumberedShards::Shard::in_shard(uint64_t number) const {
    const auto at = static_cast<size_t>(number);
    return all_ ? at : wanted_[at];
}

void NumberedShards::Shard::read(std::span<const uint64_t> numbers, std::span<Delivery> out,
                                 uint64_t epoch, bool padding) const {
    std::vector<size_t> wanted;
    for (const uint64_t number : numbers) wanted.push_back(in_shard(number));
    std::vector<Sample*> samples(wanted.size());
    shf::in_shard(url_, [&] { samples_->read(wanted, samples); });
    for (size_t i = 0; i < samples.size(); ++i)
        out[i] = {BlockRef(samples[i]->block), samples[i]->index};
    const auto origin = std::make_shared<const Origin>(Origin{.url = shown_,
                                                              .shard = number_,
                                                              .epoch = epoch,
                                                              .lane = lane_,
                                                              .padding = padding,
                                                              .part = context_.part});
    const Block* last = nullptr;
    for (Delivery& delivery : out)
        if (std::exchange(last, delivery.block.get()) != delivery.block.get())
            adopt(*delivery.block, origin);
}

// A block of a data set becomes one of the stream: its memory counts there, and is that of the
// program's allocator where there is one.
void NumberedShards::Shard::adopt(Block& block, const std::shared_ptr<const Origin>& origin) const {
    for (auto& one : block.origins) one = origin;
    for (size_t i = 0; i < block.storages.size(); ++i) {
        StorageRef& storage = block.storages[i];
        const std::span<const uint8_t> bytes = block.buffers[i];
        if (context_.options.alloc) {
            StorageRef own = context_.pool->acquire(bytes.size(), context_.cancel);
            std::copy(bytes.begin(), bytes.end(), own->data);
            block.buffers[i] = {own->data, bytes.size()};
            storage = std::move(own);
        } else {
            storage = context_.pool->borrow(std::make_shared<const StorageRef>(storage), bytes);
        }
    }
}

}  // namespace shf
