// A sequence of samples with all that are in it: what concerns each of its streams and contexts.
#pragma once

#include "stream/lane_sequence.h"
#include "stream/sequence.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace shf {

class MixSequence;

class SequenceTree {
  public:
    explicit SequenceTree(std::unique_ptr<LaneSequence> stream);
    // A mix by weight of parts that nothing was taken from yet, and that are still to be adopted.
    // Throws Error.
    SequenceTree(std::span<SequenceTree* const> parts, std::span<const double> weights,
                 const Options& options);

    // Takes over what is in the parts, which can then only be destroyed.
    void adopt(std::span<SequenceTree* const> parts) noexcept;

    [[nodiscard]] SampleSequence& top() const { return *top_; }
    [[nodiscard]] StreamContext& context() const { return *contexts_.front(); }
    // Several consumers read the lanes of one of the streams.
    [[nodiscard]] bool shares_lanes() const { return shares_lanes_; }

    // ---- The consumer's thread ----
    void start();
    [[nodiscard]] bool started() const;
    void drop_delivered_shared(const Wait& wait);
    void leave_pipes() noexcept;
    void pass_on_notices();
    // Custom allocators: callbacks may run on this thread from enter() to leave(), and serve() runs
    // those that other threads wait for.
    void enter() const noexcept;
    void leave() const noexcept;
    void serve() const;

    // ---- Any thread ----
    [[nodiscard]] bool wants_service() const;
    [[nodiscard]] uint64_t stat(int32_t stat) const;
    void wake_readers();
    void cancel() noexcept;
    // Ends the readers, after cancel().
    void join() noexcept;

    // Before anything is started: who is woken when a thread waits for serve(). Without a function
    // that is the thread that waits for samples.
    void on_wait(const std::function<void()>& wake);

  private:
    std::unique_ptr<SampleSequence> top_;
    MixSequence* mix_ = nullptr;            // top_, when that is a mix
    std::vector<StreamContext*> contexts_;  // that of top_ first
    std::vector<LaneSequence*> streams_;    // of shards, in order
    unsigned depth_ = 0;                    // of mixes in mixes
    bool shares_lanes_ = false;
};

}  // namespace shf
