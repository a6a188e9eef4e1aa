#include "stream/shard_run.h"

#include "batch/batch_plan.h"
#include "core/options.h"
#include "index/index_store.h"
#include "index/tar_indexer.h"
#include "io/descriptor.h"
#include "io/source.h"
#include "stream/open_shards.h"

#define XXH_INLINE_ALL
#include "url/redact.h"

#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <utility>

namespace shf {

namespace {

using Clock = std::chrono::steady_clock;

uint64_t nanoseconds_since(Clock::time_point start) {
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

constexpr uint64_t MiB = 1 << 20;

// Of what is the same wherever the file is mounted.
uint32_t version_hash(const Source& source) {
    const Identity now = source.identity();
    if (!now.size || (now.modified == 0 && now.version.empty())) return 0;
    const uint64_t parts[] = {*now.size, static_cast<uint64_t>(now.modified)};
    uint64_t hash = XXH3_64bits(parts, sizeof parts);
    if (!now.version.empty())
        hash = XXH3_64bits_withSeed(now.version.data(), now.version.size(), hash);
    return static_cast<uint32_t>(hash) | 1;
}

}  // namespace

Error fewer_samples() {
    return Error(SHF_E_CHANGED, "the shards have fewer samples than when the state was saved",
                 "give the shards that it was saved with, or start the epoch again");
}

std::unique_ptr<Source> open_shard(LaneContext& context, uint64_t nth, const Resume* resume,
                                   const Cancel& cancel, Origin& origin, std::string& url) {
    origin.padding = nth >= context.plan.shards_of(origin.lane);
    origin.shard = context.plan.shard(origin.epoch, origin.lane, nth);
    url = context.shards.at(origin.shard);
    origin.url = redact(url);
    auto source = Sources(context.options, cancel, context.source_use).open(url);
    origin.version = version_hash(*source);
    if (resume && resume->position.version != 0 && resume->position.version != origin.version)
        throw Error(SHF_E_CHANGED, "the shard was changed after the state was saved",
                    "give the shard that it was saved with, or start the epoch again");
    return source;
}

// Running ahead is bounded on its own, below the memory option: what a reader must have for the
// sample whose turn it is comes on top of it. With the shuffle buffers that stays under memory
// + 64 MiB (run_ahead twice: behind the last sample of the buffers, and before the next).
LaneContext::LaneContext(std::span<const char* const> urls, const Options& given, bool decodes)
    : StreamContext(given),
      filter(options),
      // A shuffle buffer holds whole samples.
      deferred(decodes && options.shuffle <= 1 ? fields_to_copy(options) : FieldTest()),
      sources(options, cancel, source_use),
      shards(sources.list(urls)),
      plan(options, shards.size()),
      single_samples(options.shuffle > 1),
      run_ahead(std::min<uint64_t>(options.memory / 4, 32 * MiB)),
      queue_limit(std::min<uint64_t>(run_ahead / 2, 2 * MiB)),
      slow_ahead_limit(options.memory / 2) {}

Error LaneContext::shuffle_too_large() const {
    return Error(
        SHF_E_LIMIT,
        "the shuffle buffers of this consumer outgrow memory=" + std::to_string(options.memory),
        "raise memory, or lower shuffle (it counts for each lane)");
}

uint64_t LaneContext::decoders(uint32_t lane) const {
    const uint64_t lanes = std::max<uint64_t>(plan.own_lanes().size(), 1);
    const uint64_t readers = (options.threads + lanes - 1) / lanes;
    const uint64_t busy =
        std::clamp<uint64_t>(plan.shards_of(lane), 1, std::max<uint64_t>(readers, 1));
    return std::max<uint64_t>(readers / busy, 1);
}

void LaneContext::wake_readers() {
    if (waiting_count.load(std::memory_order_seq_cst) == 0) return;
    const std::lock_guard lock(mutex);
    for (ShardRun* run : waiting) run->wake_reader_if_admitted();
}

void LaneContext::begin_all() {
    only_lane = nullptr;
    begin.notify_all();
}

ShardRun::ShardRun(LaneContext& context, uint64_t epoch, uint32_t lane, uint64_t nth,
                   bool last_of_epoch, std::shared_ptr<const Resume> resume)
    : context_(context),
      nth_(nth),
      last_of_epoch_(last_of_epoch),
      resume_(std::move(resume)),
      origin_(context.origin(epoch, lane)),
      // Once is enough: in the first epoch. What a filter leaves out would be missing from it.
      indexed_(context.options.write_index && epoch == context.options.epoch && !resume_ &&
               context.filter.all()) {}

void ShardRun::read() noexcept {
    std::optional<Fault> fault;
    for (bool again = true; again;) {
        again = false;
        try {
            try {
                read_shard();
            } catch (const Error& error) {
                if (!lacks_descriptor(error) || pushed_) throw;
                wait_for_descriptor(error);
                again = true;
            }
        } catch (...) {
            fault = describe_exception();
        }
    }
    const std::lock_guard lock(context_.mutex);
    ended_ = true;
    end_fault_ = std::move(fault);
    wake_consumer();
}

// Other readers have descriptors, and will close theirs: returns when it is time to try again.
// Throws `error` when there are none, or when they all wait for consumers that may be waiting for
// this shard.
void ShardRun::wait_for_descriptor(const Error& error) {
    using std::chrono::milliseconds;
    constexpr auto pause = milliseconds(5), patience = milliseconds(5000);
    // One that is being opened or closed meanwhile has a descriptor and is not counted.
    constexpr int attempts = 4;
    const auto start = Clock::now();
    attempts_alone_ = OpenShards::count() == 0 ? attempts_alone_ + 1 : 0;
    if (attempts_alone_ == attempts) throw Error(error);
    std::unique_lock lock(context_.mutex);
    const uint64_t changes = OpenShards::changes();
    // Nobody waits for this shard yet, or somebody is at work.
    if (context_.wanted != this || !OpenShards::all_wait() || changes != changes_ ||
        stuck_since_ == Clock::time_point())
        stuck_since_ = start;
    changes_ = changes;
    // Its own consumer waits for it, and so does not wake the others of its stream.
    const bool own = OpenShards::count() == static_cast<int64_t>(context_.waiting.size());
    if (start - stuck_since_ > (own ? 4 * pause : patience)) throw Error(error);
    reader_.wait_for(lock, pause, [&] { return cancel_.requested(); });
    context_.stats.add(SHF_STAT_READER_WAIT_NS, nanoseconds_since(start));
    cancel_.check();
}

void ShardRun::read_shard() {
    std::string url;
    OpenShards::Count counted;  // until the source is closed
    const auto source = open_shard(context_, nth_, resume_.get(), cancel_, *origin_, url);
    counted = OpenShards::opened();
    if (resume_ && resume_->position.from.offset > 0 && !source->seekable()) warn_of_rereading();
    SampleRequest request{.filter = context_.filter.all() ? nullptr : &context_.filter,
                          .resume = resume_.get(),
                          .single_samples = context_.single_samples,
                          .places = indexed_};
    if (!indexed_) find_points(url, *source, request);
    // What is deferred is read again, at its place: from a file, out of the kernel's cache.
    const bool cheap =
        source->seekable() && source->read_cost().gap <= ReadCost().gap && !source->mapping();
    if (context_.deferred && origin_->version != 0 && cheap) {
        request.rest = open_again(url, *source);
        if (request.rest) request.deferred = &context_.deferred;
    }
    SampleReader reader(*source, origin_,
                        {context_.options, *context_.pool, cancel_, context_.stats, this}, *this,
                        std::move(request));
    samples_ = &reader;
    try {
        reader.read();
    } catch (...) {
        opened_ = reader.opened();
        throw;
    }
    opened_ = true;
    if (const auto found = reader.found()) check_count(url, *source, *found);
    if (indexed_ && rows_) save_index(url, *source, reader.end(), reader.points());
}

// What was planned, and what len() says, comes from indexes: samples that are missing from the
// shard would be missing without a word.
void ShardRun::check_count(const std::string& url, Source& source, uint64_t found) const {
    std::optional<uint64_t> counted = context_.plan.count_of(origin_->shard);
    if (!counted && context_.filter.all()) {
        // Only an index that is sound and of this very shard is believed, which costs more to know.
        counted = indexed_samples(url, context_.options);
        if (counted && *counted > found) {
            const auto index = find_index(url, source, context_.options);
            counted = index ? std::optional<uint64_t>(index->samples()) : std::nullopt;
        }
    }
    if (!counted || *counted <= found) return;
    throw Error(SHF_E_FORMAT,
                "the index counts " + plural(*counted, "sample") + ", the shard has " +
                    std::to_string(found),
                "copy the shard again; if it is right, delete its index");
}

// A compressed shard is read by its index where that helps: to resume, and when there are more
// threads than shards.
void ShardRun::find_points(const std::string& url, Source& source, SampleRequest& request) const {
    request.decoders = context_.decoders(origin_->lane);
    if (request.decoders == 1 && !(resume_ && resume_->position.from.offset > 0)) return;
    request.points = shf::find_points(url, source, context_.options);
}

// For what is read when the reader may be gone. Nothing when it is another file meanwhile.
std::shared_ptr<Source> ShardRun::open_again(const std::string& url, const Source& opened) const {
    try {
        auto source = context_.sources.open(url);
        source->take_over(opened.seen());
        return version_hash(*source) == origin_->version ? std::move(source) : nullptr;
    } catch (const Error& error) {
        if (!lacks_descriptor(error)) throw;
        return nullptr;  // the reader has one and reads all of it
    }
}

void ShardRun::warn_of_rereading() {
    push({.block = {},
          .fault = {},
          .warning = origin_->url + ": resumes at byte " +
                     std::to_string(resume_->position.from.offset) +
                     ", read and dropped up to there, because it cannot seek"});
}

// A reader continues when the consumer waits for its next sample, regardless of the others: no
// number of lanes and no budget can end in a deadlock. Others run ahead within bounds.
bool ShardRun::admitted() const {
    if (context_.wanted == this && events_.empty()) return true;
    // Large pieces are read by the first readers alone, and leave no room for much else.
    if (slow_ahead_ && !context_.large_pieces)
        return context_.slow_ahead_bytes + asked_ <= context_.slow_ahead_limit;
    return queued_bytes_ < context_.queue_limit && context_.ahead() + asked_ <= context_.run_ahead;
}

void ShardRun::admit(size_t bytes) {
    std::unique_lock lock(context_.mutex);
    cancel_.check();
    asked_ = bytes;
    if (bytes > context_.run_ahead) context_.large_pieces = true;
    // A large sample does not come on top of full shuffle buffers. Only the consumer's next sample
    // gets that much, so this does not depend on how far readers ran ahead.
    if (const uint64_t kept = context_.shuffle_bytes.load(std::memory_order_relaxed);
        kept > 0 && bytes > context_.run_ahead && kept + bytes > context_.options.memory &&
        context_.wanted == this)
        throw context_.shuffle_too_large();
    if (admitted()) return;
    wake_consumer();  // it may have been left asleep until more had come
    const auto counted = OpenShards::waiting();
    context_.waiting.push_back(this);  // may throw: asleep from here on
    asleep_ = true;
    context_.waiting_count.store(context_.waiting.size(), std::memory_order_seq_cst);
    // Memory that was handed out before the count was seen to change woke nobody: so look once
    // more. (The count and Pool::held() are sequentially consistent for this.)
    if (admitted()) asleep_ = false;
    const auto start = Clock::now();
    // A waiting queue is refilled when half of it is gone, so that threads change seldom.
    reader_.wait(lock, [&] { return !asleep_ || cancel_.requested(); });
    context_.stats.add(SHF_STAT_READER_WAIT_NS, nanoseconds_since(start));
    asleep_ = false;
    std::erase(context_.waiting, this);
    context_.waiting_count.store(context_.waiting.size(), std::memory_order_relaxed);
    cancel_.check();
}

void ShardRun::cancel() {
    cancel_.request();
    reader_.notify_one();
}

void ShardRun::abandon(std::deque<Event>& out) {
    cancel();
    if (std::exchange(slow_ahead_, false)) context_.slow_ahead_bytes -= queued_bytes_;
    queued_bytes_ = 0;
    std::move(events_.begin(), events_.end(), std::back_inserter(out));
    events_.clear();
}

void ShardRun::wake_reader_if_admitted() {
    if (!asleep_ ||
        (context_.wanted != this && !slow_ahead_ && queued_bytes_ > context_.queue_limit / 2) ||
        !admitted())
        return;
    asleep_ = false;
    reader_.notify_one();
}

void ShardRun::is_slow() {
    const std::lock_guard lock(context_.mutex);
    slow_ahead_ = !is_head_ && !cancel_.requested();
    if (slow_ahead_) context_.slow_ahead_bytes += queued_bytes_;
}

void ShardRun::become_head() {
    is_head_ = true;
    if (!std::exchange(slow_ahead_, false)) return;
    context_.slow_ahead_bytes -= queued_bytes_;
    for (ShardRun* run : context_.waiting) run->wake_reader_if_admitted();
}

void ShardRun::want() {
    wake_reader_if_admitted();
}

void ShardRun::push(Event event) {
    pushed_ = true;
    const std::lock_guard lock(context_.mutex);
    // The reader must not come to the end of the shard as if everything had been delivered.
    cancel_.check();
    if (event.block) {
        // What is deferred will be read from the kernel's cache: not too long after the rest.
        queued_bytes_ += event.block->storage_bytes() + event.block->deferred_bytes();
        if (slow_ahead_) context_.slow_ahead_bytes += event.block->storage_bytes();
    }
    events_.push_back(std::move(event));
    // The first samples wake the consumer at once; later it sleeps until there is work for a while.
    if (!any_event_ || queued_bytes_ >= context_.queue_limit / 4) wake_consumer();
    any_event_ = true;
}

void ShardRun::wake_consumer() {
    if (context_.consumer_waits && context_.wanted == this && has_event()) {
        context_.consumer_waits = false;
        context_.consumer.notify_one();
    }
}

void ShardRun::deliver(BlockRef block) {
    std::string warning;
    if (const Schema* schema = block->schemas.back().get(); schema != schema_) {
        schema_ = schema;
        warning = many_fields(*block);
    }
    push({.block = std::move(block), .fault = {}, .warning = std::move(warning)});
}

// What to say of samples with very many fields, once for the program; as a rule nothing.
std::string ShardRun::many_fields(const Block& block) const {
    constexpr size_t many = 64;
    static std::atomic<bool> said{false};
    for (uint32_t i = 0; i < block.count; ++i) {
        const Schema& schema = *block.schemas[block.schema[i]];
        if (schema.ends.size() <= many || said.exchange(true)) continue;
        return origin_->url + ": the sample \"" + escape(block.key_of(i)) + "\" has " +
               std::to_string(schema.ends.size()) + " fields, \"" + escape(schema.name(0)) +
               "\" among them: a key ends at the first dot of a member's name, so 0001.v1.0.jpg "
               "is the field v1.0.jpg of 0001; help: if these are several samples, write their "
               "names without dots in the key";
    }
    return {};
}

// Whole samples are delivered first: the consumer may wait for them.
void ShardRun::about_to_wait() {
    samples_->flush();
    const std::lock_guard lock(context_.mutex);
    wake_consumer();
}

void ShardRun::bad_sample(Fault fault, bool wanted) {
    // Only skip_sample reads on in the same shard.
    if (context_.options.on_error != OnError::skip_sample || !skippable(fault.code))
        throw Error(std::move(fault));
    fault.shard = origin_->url;
    indexed_ = false;
    push({.block = {}, .fault = std::move(fault), .counted = wanted, .warning = {}});
}

void ShardRun::found(const GroupedSample& sample) {
    if (!indexed_) return;
    if (!rows_) rows_ = std::make_unique<IndexRows>();
    rows_->add(sample);
}

// An index is not worth the stream: what goes wrong is only logged.
void ShardRun::save_index(const std::string& url, Source& source, uint64_t end,
                          const std::optional<DecodePoints>& points) {
    if (!source.seekable()) return;
    try {
        const auto index = rows_->finish(identify(source), end, leniency_of(context_.options),
                                         points ? &*points : nullptr);
        store_index(url, *index, context_.options);
    } catch (const std::exception& error) {
        warning_ = origin_->url + ": no index is left behind: " + error.what();
    }
}

void ShardRun::take_events(std::deque<Event>& out) {
    out.swap(events_);
    queued_bytes_ = 0;
    if (!ended_) return;
    if (end_fault_) end_fault_->shard = origin_->url;
    out.push_back({.block = {},
                   .fault = std::move(end_fault_),
                   .end = true,
                   .opened = opened_,
                   .warning = std::move(warning_)});
}

}  // namespace shf
