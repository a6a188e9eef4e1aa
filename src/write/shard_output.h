// The bytes of a shard on their way to its sink: buffered, compressed by several threads, and
// hashed.
#pragma once

#include "codec/decode_points.h"
#include "codec/encoder.h"
#include "core/cancel.h"
#include "index/shard_index.h"
#include "io/sink.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace shf {

// One thread at a time. After an error nothing but the destructor may be called.
class ShardOutput {
  public:
    // `threads` compress; 0: as many as there are cores. `with_points`: points() is wanted. Throws
    // Error.
    ShardOutput(std::unique_ptr<Sink> sink, Compression compression, uint64_t level,
                uint64_t threads, const Cancel& cancel, bool with_points = false);
    ~ShardOutput();
    ShardOutput(const ShardOutput&) = delete;
    ShardOutput& operator=(const ShardOutput&) = delete;

    // Appends. Throws Error.
    void write(std::span<const uint8_t> bytes);
    void write(std::string_view bytes) {
        write({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    }
    void fill(size_t zeros);
    // Bytes so far, before compression.
    [[nodiscard]] uint64_t position() const;

    // A place to which cut() can return. False where there is none: what was written is gone.
    // Throws Error.
    bool mark();
    // Removes what was written since mark() returned true.
    void cut();

    // Hands all bytes so far to the sink, the last piece of a compressed shard as it is. Throws
    // Error.
    void flush();
    // The same for the last time. The sink, whole, is the caller's.
    std::unique_ptr<Sink> finish();
    [[nodiscard]] Sink& sink();

    // After finish(), of a compressed shard: where its decompression can start.
    [[nodiscard]] std::optional<DecodePoints> take_points();
    // From now on the first and the last bytes are kept, for identity(). Not with mark().
    void keep_ends();
    // After finish(): what an index says of the file, but for the time when it appears, which is
    // not known. Throws Error.
    [[nodiscard]] ShardIdentity identity() const;
    // Of all bytes that the sink has, after finish().
    [[nodiscard]] uint64_t size() const;
    [[nodiscard]] std::string digest() const;  // XXH3-128, as xxh128sum writes it

  private:
    struct State;
    const std::unique_ptr<State> state_;
};

}  // namespace shf
