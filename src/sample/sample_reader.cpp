#include "sample/sample_reader.h"

#include "core/options.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace shf {

namespace {

// Slabs stay in the second-level cache while they are filled and walked.
constexpr size_t smallest_slab = 4096;
constexpr size_t first_slab = 56 * 1024;
constexpr size_t copied_slab = 256 * 1024;
constexpr size_t largest_slab = 512 * 1024;
}  // namespace

SampleReader::SampleReader(Source& source, std::shared_ptr<const Origin> origin,
                           const Options& options, bool single_samples, Pool& pool,
                           const Cancel& cancel, Stats& stats, SampleSink& sink,
                           const SampleFilter* filter)
    : source_(source),
      origin_(std::move(origin)),
      options_(options),
      single_samples_(single_samples),
      pool_(pool),
      cancel_(cancel),
      stats_(stats),
      sink_(sink),
      filter_(filter),
      builder_(pool, cancel, single_samples,
               [&sink](BlockRef block) { sink.deliver(std::move(block)); }),
      wants_places_(sink.wants_places()) {}

void SampleReader::read(const Resume* resume) {
    uint64_t samples = 0;
    std::unique_ptr<Carrier> carrier;
    try {
        carrier = open_carrier(source_, origin_->url, options_, pool_, cancel_, stats_, *this);
        carrier_ = carrier.get();
        verified_ = carrier->verified();
        if (resume && resume->offset > 0 && !carrier->start_at(resume->offset))
            throw Error(SHF_E_CHANGED, "the shard ends before the position where reading resumes",
                        "give the shard that the state was saved with, or start the epoch again");
        Grouper grouper(*carrier, options_, stats_, *this, filter_, resume);
        grouper.defer(deferred_);
        if (!grouper.run()) {
            opened_ = true;
            return builder_.flush();
        }
        samples = grouper.samples();
        end_ = carrier->end();
        builder_.flush();
        carrier->finish();
        found_ = grouper.wanted();
        opened_ = true;
    } catch (const Error& error) {
        opened_ = carrier && carrier->any();
        builder_.flush();  // whole samples that came before the fault
        if (unverified_ == 0 || !skippable(error.code())) throw;
        Fault fault = error.fault();
        fault.unverified = unverified_;
        fault.cause += "; " + std::to_string(unverified_) +
                       (unverified_ == 1 ? " sample was" : " samples were") +
                       " delivered before the check of these bytes was reached";
        throw Error(std::move(fault));
    }
    if (samples == 0) {
        if (!options_.allow_empty)
            throw Error(SHF_E_FORMAT, "empty shard: there is no sample in it",
                        "allow_empty=true accepts shards without samples");
        stats_.add(SHF_STAT_EMPTY_SHARDS);
    }
}

void SampleReader::sample(const GroupedSample& sample) {
    loose_.clear();
    carrier_->kept(loose_);
    if (verified_) count_unverified();
    builder_.add({sample.key, sample.first_header, origin_, sample.schema, loose_});
    if (!wants_places_) return;
    places_.clear();
    if (carrier_->places(places_)) sink_.found(sample, places_);
}

// Of a large frame samples are delivered before its check is reached. When the check holds, all
// samples so far are verified: none of them ends beyond what was read.
void SampleReader::count_unverified() {
    if (*verified_ != last_verified_) {
        last_verified_ = *verified_;
        unverified_ = 0;
    }
    if (!loose_.empty() && loose_.back().deferred.offset > last_verified_) ++unverified_;
}

void SampleReader::bad_sample(Fault fault, bool wanted) {
    builder_.flush();  // the samples before it come first
    sink_.bad_sample(std::move(fault), wanted);
}

void SampleReader::about_to_wait() {
    builder_.flush();
    sink_.about_to_wait();
}

size_t SampleReader::next_slab_size() {
    if (expected_ > 0)
        return static_cast<size_t>(std::clamp<uint64_t>(expected_, smallest_slab, largest_slab));
    const uint64_t average = builder_.average();
    const uint64_t smallest = builder_.take_smallest();
    size_t size = last_slab_size_ == 0 ? first_slab : last_slab_size_;
    if (single_samples_) {
        size = copied_slab;
    } else if (smallest > 0 || average > 0) {
        // Small samples are copied out, so their slab may be any size. Samples that stay in the
        // slab bound its size, because a kept sample keeps it: less than 64 KiB + 8 times the
        // smallest.
        size =
            average <= BlockBuilder::always_copied
                ? copied_slab
                : static_cast<size_t>(std::min<uint64_t>(first_slab + 7 * smallest, largest_slab));
    }
    size = std::min(size, std::max<size_t>(first_slab, static_cast<size_t>(options_.memory / 16)));
    size &= ~(std::bit_floor(size) / 8 - 1);  // a size that the pool does not round up
    last_slab_size_ = size;
    return size;
}

}  // namespace shf
