#include "sample/sample_reader.h"

#include "core/options.h"
#include "core/stats.h"

#include <utility>

namespace shf {

SampleReader::SampleReader(Source& source, std::shared_ptr<const Origin> origin,
                           const ReadContext& context, SampleSink& sink, SampleRequest request)
    : source_(source),
      origin_(std::move(origin)),
      context_(context),
      sink_(sink),
      request_(std::move(request)),
      sizer_(context.options, request_.single_samples, request_.expected),
      builder_(context.pool, context.cancel, request_.single_samples,
               [&sink](BlockRef block) { sink.deliver(std::move(block)); }) {
    builder_.set_source(request_.rest);
}

void SampleReader::read() {
    uint64_t samples = 0;
    std::unique_ptr<Carrier> carrier;
    try {
        carrier = open_carrier(source_, origin_->url, context_, sizer_, request_);
        places_ = request_.places && carrier->in_place();
        verified_ = carrier->verified();
        if (const Resume* resume = request_.resume;
            resume && resume->position.from.offset > 0 &&
            !carrier->start_at(resume->position.from.offset))
            throw Error(SHF_E_CHANGED, "the shard ends before the position where reading resumes",
                        "give the shard that the state was saved with, or start the epoch again");
        Grouper grouper(*carrier, *this, context_.options, context_.stats, request_);
        if (!grouper.run()) {
            opened_ = true;
            return builder_.flush();
        }
        samples = grouper.samples();
        end_ = carrier->end();
        builder_.flush();
        carrier->finish();
        points_ = carrier->take_points();
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
        if (!context_.options.allow_empty)
            throw Error(SHF_E_FORMAT, "empty shard: there is no sample in it",
                        "allow_empty=true accepts shards without samples");
        context_.stats.add(SHF_STAT_EMPTY_SHARDS);
    }
}

void SampleReader::sample(const GroupedSample& sample) {
    if (verified_) count_unverified(sample.fields);
    sizer_.add(
        builder_.add({sample.key, sample.first_header, origin_, sample.schema, sample.fields}));
    if (places_) sink_.found(sample);
}

// Of a large frame samples are delivered before its check is reached. When the check holds, all
// samples so far are verified: none of them ends beyond what was read.
void SampleReader::count_unverified(std::span<const LooseField> fields) {
    if (*verified_ != last_verified_) {
        last_verified_ = *verified_;
        unverified_ = 0;
    }
    if (!fields.empty() && fields.back().offset + fields.back().size > last_verified_)
        ++unverified_;
}

void SampleReader::bad_sample(Fault fault, bool wanted) {
    builder_.flush();  // the samples before it come first
    sink_.bad_sample(std::move(fault), wanted);
}

}  // namespace shf
