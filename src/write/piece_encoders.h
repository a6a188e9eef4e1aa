// Compresses the pieces of one shard, several at once, and gives them back in their order.
#pragma once

#include "codec/encoder.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace shf {

class Cancel;
class PointRecorder;

// One thread at a time; the threads inside are its own. The bytes do not depend on their number.
class PieceEncoders {
  public:
    // Takes compressed bytes, in order, on the thread of the call.
    using Put = std::function<void(std::span<const uint8_t>)>;

    // `threads` 0: as many as there are cores; with 1 the caller's thread compresses. `cancel`,
    // which must outlive this, ends a wait. `recorder`, which must too, gets the pieces as they are
    // put; it may be NULL. Throws Error.
    PieceEncoders(Compression compression, uint64_t level, uint64_t threads, const Cancel& cancel,
                  PointRecorder* recorder = nullptr);
    ~PieceEncoders();
    PieceEncoders(const PieceEncoders&) = delete;
    PieceEncoders& operator=(const PieceEncoders&) = delete;

    // Throws Error.
    void write(std::span<const uint8_t> bytes, const Put& put);
    // Ends the piece early, and returns when all have been put. Throws Error.
    void flush(const Put& put);
    // The same for the last time. Behind pieces of zstd comes a seek table, a frame that decoders
    // skip (contrib/seekable_format/zstd_seekable_compression_format.md of zstd).
    void finish(const Put& put);

  private:
    struct State;
    const std::unique_ptr<State> state_;
};

}  // namespace shf
