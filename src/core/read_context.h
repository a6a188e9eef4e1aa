// What every floor of the reading of one shard needs, handed down once by who starts the reading.
#pragma once

#include <cstddef>

namespace shf {

class Cancel;
class Pool;
class Stats;
struct Options;

// Decides when a reader may go on. Called on the reader's thread.
class MemoryGate {
  public:
    virtual ~MemoryGate() = default;
    // Called before `bytes` of memory are taken; returns when they may be, or throws
    // Error(CANCELLED).
    virtual void admit(size_t bytes) = 0;
    // Called before a read that will wait for another process or host.
    virtual void about_to_wait() = 0;
    // The shard takes longer to decompress than fresh memory takes to get: what is read of it ahead
    // of time is worth its memory. Called before the first member is found.
    virtual void is_slow() = 0;
};

// All that it refers to must outlive the reading.
struct ReadContext {
    const Options& options;
    Pool& pool;
    const Cancel& cancel;
    Stats& stats;
    MemoryGate* gate = nullptr;  // NULL: the reader may always go on

    void admit(size_t bytes) const {
        if (gate) gate->admit(bytes);
    }
    void about_to_wait() const {
        if (gate) gate->about_to_wait();
    }
    void is_slow() const {
        if (gate) gate->is_slow();
    }
};

}  // namespace shf
