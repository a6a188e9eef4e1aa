// Where decompression of a shard can start, and what comes out there.
//
// What a compressed shard gives is cut into stretches, each with a checksum of its own. Most start
// at a point: the start of a frame (gzip or lzip member, bzip2 or xz stream, zstd or lz4 frame), or
// a place inside a gzip member where a deflate block begins, with the up to 32 KiB of output before
// it that the block may refer to. A frame that is larger than a stretch and not of gzip has
// stretches without points: they are decompressed from the point before them.
#pragma once

#include "codec/codec.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace shf {

struct DecodePoints {
    static constexpr uint64_t none = UINT64_MAX;
    // A stretch is never larger. The frames of all our own writers fit into one.
    static constexpr uint64_t longest = uint64_t{8} << 20;
    // A frame that starts closer to a point than this is none.
    static constexpr uint64_t least = uint64_t{1} << 20;
    // Inside a gzip member points are at least so far apart: two stretches, for what lies on a
    // border, are no more than 4 MiB and two blocks, and windows take no more than 1.6 percent.
    static constexpr uint64_t inside = uint64_t{2} << 20;
    static constexpr size_t window_size = 32768;

    std::string codec;    // as codec_version() has them
    uint64_t length = 0;  // of the output

    // One of each for every stretch.
    std::vector<uint64_t> starts;  // offset in the output; the first is 0
    std::vector<uint64_t> sums;    // XXH3-64 of the output
    std::vector<uint64_t> places;  // in the compressed data, in bits; none: no point
    std::vector<uint32_t> window_ends;
    // For each stretch what lies between the end before and its own: nothing, or a window in the
    // zlib format.
    std::vector<uint8_t> windows;

    [[nodiscard]] size_t size() const { return starts.size(); }
    [[nodiscard]] bool is_point(size_t stretch) const { return places[stretch] != none; }
    [[nodiscard]] uint64_t end(size_t stretch) const {
        return stretch + 1 < size() ? starts[stretch + 1] : length;
    }
    // The stretch that an offset below `length` lies in.
    [[nodiscard]] size_t stretch_at(uint64_t offset) const;
    // The last point that is not behind a stretch.
    [[nodiscard]] size_t point_before(size_t stretch) const;
    // Behind the stretches of a point: the next point, or size().
    [[nodiscard]] size_t next_point(size_t stretch) const;
    // The byte of the compressed data, of `file_size` bytes, behind which nothing is of use to a
    // stretch: that of the next point.
    [[nodiscard]] uint64_t input_end(size_t stretch, uint64_t file_size) const;
    // The window of a point, compressed; empty when it is the start of a frame.
    [[nodiscard]] Bytes window(size_t stretch) const;
    bool operator==(const DecodePoints&) const = default;
    // What cannot be true of a shard of `file_size` bytes, or NULL.
    [[nodiscard]] const char* fault(uint64_t file_size) const;
};

// Collects them while a shard is decompressed from front to back. Which places become points
// depends on nothing but where frames and blocks are.
class PointRecorder {
  public:
    // A frame starts at a byte of the compressed data, and at an offset of the output. All places
    // come in order, each before the bytes of the output behind it.
    void frame(uint64_t place, uint64_t offset);
    // A deflate block starts at a bit, inside a gzip member. Whether it becomes a point; then
    // window() follows.
    bool wants_block(uint64_t offset) const;
    void block(uint64_t place_bits, uint64_t offset, Bytes window);
    // The next bytes of the output.
    void bytes(Bytes output);
    // After the last byte.
    DecodePoints finish(std::string_view codec);

  private:
    struct Place {
        uint64_t place, offset;
        std::vector<uint8_t> window;
    };
    void end_stretch();
    void begin_stretch(Place place);

    DecodePoints points_;
    std::deque<Place> ahead_;  // points whose output has not come yet
    uint64_t last_ = 0;        // offset of the last point
    bool any_ = false;
    struct Hash;
    struct Free {
        void operator()(Hash* hash) const;
    };
    std::unique_ptr<Hash, Free> hash_;  // of the stretch under way
};

}  // namespace shf
