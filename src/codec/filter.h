// Decompression of whole shards: gzip, bzip2, xz, zstd, lz4, lzip and compress, found by their
// magic bytes and never by the suffix. One layer only.
//
// The codec libraries are called directly. libarchive's filters were tried and cannot keep the
// rules: version 3.6.2 ignores the CRC of a gzip member and junk after a compressed stream, takes a
// bzip2 stream whose first block is damaged for plain data, ignores unknown xz checks, and fixes
// the memory limit of xz at 1 GiB. It stays the oracle of the differential tests.
#pragma once

#include "io/source.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace shf {

struct Options;
class Codec;
class PointRecorder;

// What a filter noticed and accepted.
struct FilterReport {
    const char* codec = nullptr;  // as codec_version() has them; NULL: not compressed
    bool trailing = false;        // junk after the compressed data, accepted under trailing=ignore
    // Bytes of the output whose checks hold, or that have none. What was read beyond may be wrong.
    uint64_t verified = 0;
};

// Returns a reader of the decompressed bytes of `input`, or of its bytes as they are when they
// start with no magic of a codec. Looks at the first bytes at the first read(), not before. read()
// throws TRUNCATED, INTEGRITY, FORMAT, LIMIT or UNSUPPORTED with the offset in the *compressed*
// input in the cause's words and in Fault::offset the offset in the output. It returns 0 only when
// the compressed data's own trailer was checked and the input is at its end. finish() is passed on
// to `input`. A frame or block of at most 8 MiB is returned when its check holds; of a larger one
// bytes are returned before, and of any with the option resync. Compressed input is read in blocks
// of 128 KiB, so that no cut of its reads can show; a read() may wait for the rest of a block, also
// after ready(). `report` and `options` must outlive the result; `report` is written by read() and
// finish().
std::unique_ptr<Sequential> open_filter(std::unique_ptr<Sequential> input, const Options& options,
                                        FilterReport& report);

// The same. The bytes that read() returns, and where decompression of them could start, go to
// `recorder`, which must outlive the result: when read() has returned 0 it has all of them, if the
// input was compressed. Of gzip it takes longer, because ISA-L does not tell where blocks begin.
std::unique_ptr<Sequential> open_recorded_filter(std::unique_ptr<Sequential> input,
                                                 const Options& options, FilterReport& report,
                                                 PointRecorder& recorder);

// The decoder of a codec.
std::unique_ptr<Codec> make_codec(std::string_view name, const Options& options);

// Whether decompression takes longer than fresh memory does, which the system clears page by page.
// Reading far ahead pays only then: zstd and lz4 are faster into memory that is used again.
bool is_slow_codec(std::string_view codec);

// The library behind a codec and its version, "isa-l 2.30.0" for "gzip", as found at run time where
// the library tells; NULL for an unknown codec. Static text.
const char* codec_version(std::string_view codec);

}  // namespace shf
