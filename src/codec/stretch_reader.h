// Decompresses stretches of a shard whose points are known.
#pragma once

#include "codec/codec.h"
#include "codec/decode_points.h"
#include "io/source.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

struct libdeflate_decompressor;

namespace shf {

struct Options;

// One thread at a time. What a stretch follows on is decompressed once: stretches one after another
// are cheap, others start at the point before them.
class StretchReader {
  public:
    // `source` is the compressed shard. The references must outlive the reader.
    StretchReader(Source& source, const DecodePoints& points, const Options& options);
    ~StretchReader();

    // Fills `out`, of the size of the stretch, with bytes that its checksum proves. Throws
    // Error(INTEGRITY, FORMAT, TRUNCATED, ...) at the offset in the output; a next call starts
    // again.
    void read(size_t stretch, std::span<uint8_t> out);
    // The same shard, open in another place.
    void set_source(Source& source) { source_ = &source; }
    // The stretch that a read goes on with; size() of the points when there is none.
    [[nodiscard]] size_t next() const { return next_; }

  private:
    struct FreeDecompressor {
        void operator()(libdeflate_decompressor* inflate) const;
    };

    [[nodiscard]] bool is_members(size_t stretch) const;
    bool read_members(size_t stretch, std::span<uint8_t> out);
    void start(size_t point, uint64_t limit);
    void decode(size_t stretch, std::span<uint8_t> out);
    void begin_frame();
    bool fill();
    [[nodiscard]] Bytes available() const { return Bytes(input_).subspan(begin_, end_ - begin_); }
    [[nodiscard]] Error fault(size_t stretch, int32_t code, const std::string& cause) const;

    Source* source_;
    const DecodePoints& points_;
    const Options& options_;
    const uint64_t file_size_;
    const size_t chunk_;  // bytes that are read at once
    std::unique_ptr<Codec> codec_, rest_;
    std::unique_ptr<libdeflate_decompressor, FreeDecompressor> members_;
    Codec* current_ = nullptr;  // within a frame
    size_t next_;
    std::vector<uint8_t> input_;
    size_t begin_ = 0, end_ = 0;  // in input_: bytes that were not consumed
    uint64_t position_ = 0;       // in the file, of what is read next
    uint64_t limit_ = 0;          // no need to read beyond, as far as is known
    std::vector<uint8_t> unwanted_;
};

}  // namespace shf
