// Samples of several sequences by weight. Each part keeps its readers, its memory and what it does
// about errors; only the order is that of the mix.
#pragma once

#include "order/mixture.h"
#include "stream/sequence.h"

#include <memory>
#include <span>
#include <vector>

namespace shf {

class LaneSequence;

class MixSequence final : public SampleSequence {
  public:
    using Streams = std::vector<LaneSequence*>;

    // Of parts with these streams of shards; without weights all are equal. The parts themselves
    // come with adopt(). Throws Error.
    MixSequence(std::span<const Streams> parts, std::span<const double> weights,
                const Options& options);
    void adopt(std::unique_ptr<SampleSequence> part) noexcept;

    Pull pull(Delivery& out, const Wait& wait) override;
    [[nodiscard]] Position position() override;
    [[nodiscard]] StreamState identity() override;
    [[nodiscard]] Restored prepare(const StreamState& state) override;
    void apply(Restored restored) override;
    void repeat() noexcept override;
    [[nodiscard]] StreamContext& context() override { return context_; }

  private:
    [[nodiscard]] bool is_empty() const override;
    void check_epochs(std::span<const Streams> parts) const;
    void check_consumers(const Streams& streams) const;

    StreamContext context_;
    const Mixture mixture_;
    const Plan& plan_;  // of the first stream
    std::vector<std::unique_ptr<SampleSequence>> parts_;
    std::vector<bool> ended_;  // parts that were found at their end
    uint64_t mixed_ = 0;       // samples that came from the parts
};

}  // namespace shf
