// A compressed shard as what comes out of it: any bytes at any offset.
#pragma once

#include "codec/decode_points.h"
#include "codec/stretch_cache.h"
#include "core/recycler.h"
#include "io/source.h"

#include <memory>

namespace shf {

struct Options;

// What all readings of one compressed shard share; outlives them.
struct UnpackedShard {
    std::shared_ptr<const DecodePoints> points;
    uint64_t number;  // in the cache
    const Options& options;
    StretchCache& cache;
    Recycler& memory;
};

// Every byte that it gives is covered by the checksum of its stretch, which is decompressed as a
// whole. Any number of threads, and forked children too, if `compressed` is.
class UnpackedSource final : public Source {
  public:
    // The references must outlive the source.
    UnpackedSource(Source& compressed, const UnpackedShard& shard)
        : compressed_(compressed), shard_(shard) {}

    // Of what comes out. The rest is about the file.
    [[nodiscard]] std::optional<uint64_t> size() const override { return shard_.points->length; }
    [[nodiscard]] Identity identity() const override { return compressed_.identity(); }
    void prefetch(std::span<const ByteRange> ranges) override;
    [[nodiscard]] bool seekable() const override { return true; }
    size_t read(uint64_t offset, std::span<uint8_t> out) override;
    void verify() override { compressed_.verify(); }
    [[nodiscard]] bool touched() const override { return compressed_.touched(); }
    [[nodiscard]] std::shared_ptr<SeenBytes> seen() const override { return compressed_.seen(); }
    void take_over(std::shared_ptr<SeenBytes> seen) override;
    // The result must not outlive the source.
    std::unique_ptr<Sequential> open_sequential(uint64_t offset) override;

  private:
    StorageRef stretch(size_t number);

    Source& compressed_;
    const UnpackedShard& shard_;
};

}  // namespace shf
