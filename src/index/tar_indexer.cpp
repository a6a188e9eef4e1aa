#include "index/tar_indexer.h"

#include "codec/decode_points.h"
#include "codec/filter.h"
#include "codec/magic.h"
#include "core/options.h"
#include "sample/grouper.h"
#include "tar/tar_listing.h"

#include <array>
#include <limits>
#include <memory>
#include <utility>

namespace shf {

namespace {

class TarIndexer final : private MemberFeed, private GrouperClient {
  public:
    TarIndexer(Source& source, const Options& options, const Cancel& cancel)
        : options_(options), listing_(source, options_, cancel, stats_) {}
    // Of what comes out of a compressed tar.
    TarIndexer(std::unique_ptr<Sequential> input, const Options& options, const Cancel& cancel)
        : options_(options), listing_(std::move(input), nullptr, options_, cancel, stats_) {}

    // Throws Error when something is wrong before the proven end.
    void run() {
        MemberFeed& feed = *this;
        GrouperClient& client = *this;
        Grouper grouper(feed, client, options_, stats_);
        grouper.run();
        if (grouper.samples() == 0 && !options_.allow_empty)
            throw Error(SHF_E_FORMAT, "empty shard: there is no sample in it",
                        "allow_empty=true accepts shards without samples");
        listing_.finish();
    }
    // After run(). `points` may be NULL.
    [[nodiscard]] std::shared_ptr<const ShardIndex> index(const ShardIdentity& identity,
                                                          const DecodePoints* points) const {
        return rows_.finish(identity, end_, leniency_of(options_), points);
    }

  private:
    bool next(Member& member) override {
        if (!listing_.next(member)) return false;
        end_ = end_of(member);
        return true;
    }
    void skip(const Member& member) override { listing_.skip(member); }
    std::optional<Fault> take(const Member& member) override {
        listing_.skip(member);
        places_.push_back({nullptr, member.size, nullptr, member.data_offset});
        return std::nullopt;
    }
    std::span<const LooseField> kept() override { return places_; }
    void release() override { places_.clear(); }

    void sample(const GroupedSample& sample) override { rows_.add(sample); }
    void bad_sample(Fault fault, bool /*wanted*/) override { throw Error(std::move(fault)); }

    const Options& options_;
    Stats stats_;
    TarListing listing_;
    std::vector<LooseField> places_;  // of the sample under construction
    IndexRows rows_;
    uint64_t end_ = 0;
};

}  // namespace

uint64_t leniency_of(const Options& options) {
    return (options.end_marker == EndMarker::optional ? 1U : 0U) | (options.concat ? 2U : 0U) |
           (options.trailing == Trailing::ignore ? 4U : 0U) |
           (options.duplicate_keys == DuplicateKeys::accept ? 8U : 0U) |
           (options.allow_empty ? 16U : 0U);
}

std::shared_ptr<const ShardIndex> index_tar(Source& source, const Options& options,
                                            const Cancel& cancel) {
    std::array<uint8_t, 512> start{};
    const auto head = std::span(start).first(source.read(0, start));
    Options unbounded = options;
    unbounded.memory = unbounded.max_member = unbounded.max_sample =
        std::numeric_limits<int64_t>::max();
    const ShardIdentity identity = identify(source);
    if (!codec_of_magic(head)) {
        TarIndexer indexer(source, unbounded, cancel);
        indexer.run();
        return indexer.index(identity, nullptr);
    }
    FilterReport report;
    PointRecorder recorder;
    TarIndexer indexer(open_recorded_filter(source.open_sequential(0), unbounded, report, recorder),
                       unbounded, cancel);
    indexer.run();
    const DecodePoints points = recorder.finish(report.codec);
    return indexer.index(identity, &points);
}

}  // namespace shf
