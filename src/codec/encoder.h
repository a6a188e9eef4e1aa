// Compression in pieces: what is to be compressed is cut every piece_size() bytes, and each piece
// becomes a frame of its own (a gzip member, a bzip2 or xz stream, a zstd or lz4 frame). So any
// number of threads compress at once, the bytes are the same regardless of how many, and reading
// can start at any piece. All of these formats say that frames may follow one another: RFC 1952,
// 2.2; RFC 8878, 3.1; the xz file format, 2; the lz4 frame format, "Frame Concatenation"; bzip2 by
// its manual, 2.
#pragma once

#include "core/options.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace shf {

// That of a file name's suffix, as codec_of_suffix. Throws Error(UNSUPPORTED) for one that is read
// alone, as .tar.lz.
Compression compression_of(std::string_view name);

// Its codec, as codec_version() has them.
const char* compression_name(Compression compression);

// Bytes of a piece before compression; the last one has less.
size_t piece_size(Compression compression);

// Levels 1 to this one; 0 is the usual one of the codec.
uint64_t highest_level(Compression compression);

// Compresses pieces with the memory of one compressor. One thread at a time.
class Encoder {
  public:
    virtual ~Encoder() = default;
    // Replaces `out` by a whole frame with `piece` and a checksum over it. Throws Error(NOMEM).
    virtual void encode(std::span<const uint8_t> piece, std::vector<uint8_t>& out) = 0;
};

// Not of automatic and none. `level` is checked against highest_level(). Throws Error: USAGE,
// NOMEM.
std::unique_ptr<Encoder> make_encoder(Compression compression, uint64_t level);

}  // namespace shf
