#include "stream/indexed_lane.h"

#include "core/options.h"
#include "core/parallel.h"
#include "core/threads.h"
#include "io/each_shard.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace shf {

namespace {

// A piece has about so many bytes, which are worth a thread's while.
constexpr uint64_t least_piece = 1 << 20;
// Shards of a network that are read at once. One thread reads pieces of them, since what is fetched
// ahead of a shard is for one.
constexpr uint64_t most_at_once = 16;
// All shards of a piece are open while it is read.
constexpr size_t most_shards = 32;
// Elements that are computed between two looks at the cancel flag.
constexpr uint64_t elements_at_once = 1 << 16;
// While it is not known how large samples are.
constexpr uint64_t first_samples = 8;

}  // namespace

IndexedLane::IndexedLane(LaneContext& context, const LaneState& from)
    : context_(context),
      number_(from.lane),
      dealing_(context.dealing()),
      shards_(context, from.lane),
      remote_(are_remote(context.shards)),
      // What lies between the samples of a piece is read along where requests are slow: the more
      // samples, the less of that.
      piece_bytes_(remote_ ? std::max(context.run_ahead / 2, least_piece) : least_piece),
      most_samples_(piece_bytes_ / 4096),
      planned_epoch_(from.epoch),
      planned_(from.taken),
      planned_share_(share(from.base)),
      epoch_(from.epoch),
      base_(from.base),
      taken_(from.taken),
      count_(planned_share_->count()) {
    if (from.epoch < context.options.epoch || taken_ > count_)
        throw Error(SHF_E_FORMAT, "the state has a consumer where none can stand", state_help);
}

// ---- Planning -----------------------------------------------------------------------------------

// Room for so many bytes; what the consumer waits for has it at once. False: the stream was
// cancelled.
bool IndexedLane::wait_for_room(uint64_t bytes, const Piece* piece) {
    std::unique_lock lock(context_.mutex);
    const uint64_t most_pieces = 2 * context_.options.threads + 2;
    const auto has_room = [&] {
        if (!piece)
            return pieces_.empty() ||
                   (pieces_.size() < most_pieces && queued_bytes_ < context_.run_ahead);
        return (!pieces_.empty() && pieces_.front().get() == piece &&
                piece->ready == piece->given) ||
               queued_bytes_ + bytes <= context_.run_ahead;
    };
    room_.wait(lock, [&] { return has_room() || context_.cancel.requested(); });
    return !context_.cancel.requested();
}

IndexedLane::PieceRef IndexedLane::next_piece() {
    const std::lock_guard planning(planning_);
    if (!wait_for_room(0, nullptr)) return nullptr;
    auto piece = std::make_shared<Piece>();
    if (!plan_piece(*piece)) return nullptr;
    piece->slots.resize(piece->wanted.size());
    const std::lock_guard lock(context_.mutex);
    pieces_.push_back(piece);
    return piece;
}

// The next samples, all of one epoch; false when there are no more.
bool IndexedLane::plan_piece(Piece& piece) {
    while (planned_ == planned_share_->count()) {
        order_.reset();
        wrapped_ = false;
        planned_ = 0;
        planned_share_.emplace(share(0));
        if (context_.is_over(++planned_epoch_) || planned_share_->count() == 0) {
            planned_ = planned_share_->count();
            return false;
        }
    }
    if (context_.is_over(planned_epoch_)) return false;
    const uint64_t samples = samples_read_.load(std::memory_order_relaxed);
    const uint64_t bytes = bytes_read_.load(std::memory_order_relaxed);
    const uint64_t fitting = samples == 0
                                 ? first_samples
                                 : std::clamp(piece_bytes_ / std::max<uint64_t>(bytes / samples, 1),
                                              uint64_t{1}, most_samples_);
    piece.epoch = planned_epoch_;
    const uint64_t end = std::min(planned_share_->count(), planned_ + fitting);
    std::set<uint64_t> shards;
    for (; planned_ < end && shards.size() < most_shards; ++planned_) {
        uint64_t t = planned_share_->element(planned_);
        const bool padding = t >= dealing_.samples;
        if (padding) t %= dealing_.samples;
        if (!order_ || (padding && !std::exchange(wrapped_, true)))
            order_ = std::make_unique<IndexedOrder>(context_.plan, context_.options, piece.epoch);
        while (!order_->advance(t, elements_at_once)) context_.cancel.check();
        const IndexedOrder::Place place = order_->at(t);
        shards.insert(place.shard);
        piece.wanted.push_back({place.shard, place.number, padding});
    }
    return true;
}

// ---- Reading ------------------------------------------------------------------------------------

void IndexedLane::read_ahead() noexcept {
    PieceRef piece;
    try {
        while ((piece = next_piece())) {
            read(*piece);
            piece.reset();
        }
    } catch (...) {
        const std::lock_guard lock(context_.mutex);
        std::optional<Fault>& failure = piece ? piece->failure : failure_;
        if (!failure) failure = describe_exception();
        context_.consumer.notify_one();
    }
}

// In steps, so that samples of unexpected size do not come all at once.
void IndexedLane::read(Piece& piece) {
    Shards shards;
    const std::vector<uint64_t> sizes = sizes_of(piece, shards);
    for (size_t first = 0; first < sizes.size();) {
        size_t last = first;
        uint64_t bytes = 0;
        do {
            if (last > first && sizes[last] > piece_bytes_ - std::min(bytes, piece_bytes_)) break;
            bytes += std::min(sizes[last], context_.options.memory);
        } while (++last < sizes.size());
        if (!wait_for_room(bytes, &piece)) return;
        std::vector<Slot> slots = read_samples(piece, first, last, shards);
        bytes = std::accumulate(slots.begin(), slots.end(), uint64_t{0},
                                [](uint64_t sum, const Slot& slot) { return sum + slot.bytes; });
        bytes_read_.fetch_add(bytes, std::memory_order_relaxed);
        samples_read_.fetch_add(slots.size(), std::memory_order_relaxed);
        const std::lock_guard lock(context_.mutex);
        std::move(slots.begin(), slots.end(),
                  piece.slots.begin() + static_cast<std::ptrdiff_t>(first));
        queued_bytes_ += bytes;
        piece.ready = first = last;
        if (pieces_.front().get() == &piece) context_.consumer.notify_one();
    }
}

// Opens the shards of the piece. The size of what cannot be opened is 0.
std::vector<uint64_t> IndexedLane::sizes_of(const Piece& piece, Shards& shards) {
    std::vector<uint64_t> sizes;
    sizes.reserve(piece.wanted.size());
    for (const Wanted& wanted : piece.wanted) shards.try_emplace(wanted.shard);
    std::vector<Shards::value_type*> opened;
    for (auto& shard : shards) opened.push_back(&shard);
    at_once(opened.size(), [&](size_t i) {
        try {
            opened[i]->second = shards_.open(opened[i]->first, piece.epoch);
        } catch (const Error&) {  // comes again where its samples are read
        }
    });
    for (const Wanted& wanted : piece.wanted) {
        const auto& shard = shards.at(wanted.shard);
        sizes.push_back(shard ? shard->bytes(wanted.number) : 0);
    }
    return sizes;
}

// Shard by shard, each from front to back.
std::vector<IndexedLane::Slot> IndexedLane::read_samples(const Piece& piece, size_t first,
                                                         size_t last, const Shards& shards) {
    std::vector<Slot> slots(last - first);
    std::vector<size_t> order(last - first);
    std::iota(order.begin(), order.end(), first);
    const auto place = [&](size_t i) {
        const Wanted& wanted = piece.wanted[i];
        return std::tuple(wanted.shard, wanted.padding, wanted.number);
    };
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return place(a) < place(b); });
    // The first of each shard, and of those of it that are repeated.
    std::vector<size_t> starts;
    for (size_t i = 0; i < order.size(); ++i) {
        const Wanted &wanted = piece.wanted[order[i]], &before = piece.wanted[order[i - (i > 0)]];
        if (i == 0 || wanted.shard != before.shard || wanted.padding != before.padding)
            starts.push_back(i);
    }
    at_once(starts.size(), [&](size_t i) {
        const size_t end = i + 1 < starts.size() ? starts[i + 1] : order.size();
        read_of_shard(piece, std::span(order).subspan(starts[i], end - starts[i]), first, shards,
                      slots);
    });
    return slots;
}

// Calls work(i) for every i below `count`: for several at once where each waits for a network.
void IndexedLane::at_once(size_t count, const std::function<void(size_t)>& work) const {
    run_jobs(count, 1, remote_ ? most_at_once : 1, UINT64_MAX, work, [](size_t i) { return i; });
}

void IndexedLane::read_of_shard(const Piece& piece, std::span<const size_t> places, size_t first,
                                const Shards& shards, std::span<Slot> out) {
    const Wanted& wanted = piece.wanted[places[0]];
    std::vector<uint64_t> numbers;
    for (const size_t place : places) numbers.push_back(piece.wanted[place].number);
    const auto keep = [&](size_t place, Delivery sample) {
        Slot& slot = out[place - first];
        slot.bytes = sample.block->payload_of(sample.index);
        slot.sample = std::move(sample);
    };
    try {
        if (const auto& shard = shards.at(wanted.shard)) {
            std::vector<Delivery> samples(numbers.size());
            shard->read(numbers, samples, piece.epoch, wanted.padding);
            for (size_t i = 0; i < places.size(); ++i) keep(places[i], std::move(samples[i]));
            return;
        }
    } catch (...) {  // which of them it is comes out below
    }
    std::vector<size_t> in_turn(places.size());
    std::iota(in_turn.begin(), in_turn.end(), size_t{0});
    std::sort(in_turn.begin(), in_turn.end(),
              [&](size_t a, size_t b) { return places[a] < places[b]; });
    for (const size_t i : in_turn) {
        try {
            const auto shard = shards_.open(wanted.shard, piece.epoch);
            Delivery sample;
            shard->read(std::span(numbers).subspan(i, 1), {&sample, 1}, piece.epoch,
                        wanted.padding);
            keep(places[i], std::move(sample));
        } catch (...) {
            out[places[i] - first].fault = std::make_unique<Fault>(describe_exception());
            // The stream ends there: nobody comes to those behind it.
            if (context_.options.on_error == OnError::raise) return;
        }
    }
}

// ---- Consumer -----------------------------------------------------------------------------------

void IndexedLane::begin_epoch(uint64_t epoch) {
    epoch_ = epoch;
    base_ = taken_ = 0;
    count_ = share(0).count();
}

LaneState IndexedLane::position(uint64_t /*epoch*/, uint64_t /*taken*/) const {
    LaneState state = LaneState::at_start(number_, epoch_);
    state.taken = taken_;
    state.base = base_;
    return state;
}

// Takes what is ready; false when the caller does not want to wait for it.
bool IndexedLane::fetch() {
    std::unique_lock lock(context_.mutex);
    const auto has_failed = [this] {
        return pieces_.empty() ? failure_.has_value() : pieces_.front()->failure.has_value();
    };
    const auto is_ready = [&] {
        return has_failed() ||
               (!pieces_.empty() && pieces_.front()->ready > pieces_.front()->given);
    };
    if (!is_ready() && !context_.wait_for_event(
                           lock, is_ready, [this] { room_.notify_all(); }, [] { return false; }))
        return false;
    if (pieces_.empty()) throw Error(*failure_);
    if (pieces_.front()->ready == pieces_.front()->given) throw Error(*pieces_.front()->failure);
    Piece& piece = *pieces_.front();
    for (; piece.given < piece.ready; ++piece.given) {
        slots_.push_back(std::move(piece.slots[piece.given]));
        queued_bytes_ -= slots_.back().bytes;
    }
    if (piece.given == piece.slots.size()) pieces_.pop_front();
    room_.notify_all();
    return true;
}

Pull IndexedLane::pull(Delivery& out) {
    for (;;) {
        if (taken_ == count_) return Pull::epoch_end;
        if (slots_.empty() && !fetch()) return Pull::later;
        Slot& slot = slots_.front();
        if (slot.fault) {
            context_.fault(*slot.fault, false);  // unless it is thrown, it is skipped
        } else {
            out = std::move(slot.sample);
            if (!context_.batched)
                for (const StorageRef& storage : out.block->storages) storage.hand_out();
        }
        const bool skipped = slot.fault != nullptr;
        slots_.pop_front();
        ++taken_;
        if (!skipped) return Pull::sample;
    }
}

// ---- Provider -----------------------------------------------------------------------------------

std::unique_ptr<SampleLane> IndexedLanes::lane(LaneContext& context, const LaneState& from) {
    return std::make_unique<IndexedLane>(context, from);
}

void IndexedLanes::start(LaneContext& context, std::span<const std::unique_ptr<SampleLane>> lanes) {
    auto* const lane = static_cast<IndexedLane*>(lanes.front().get());
    const uint64_t threads = lane->is_remote() ? 1 : context.options.threads;
    for (uint64_t i = 0; i < threads; ++i)
        start_thread(threads_, "readers", threads, [lane] { lane->read_ahead(); });
}

void IndexedLanes::join() noexcept {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
}

}  // namespace shf
