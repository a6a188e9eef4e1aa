#include "codec/decode_points.h"

#include <libdeflate.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

namespace shf {

// ---- Points -------------------------------------------------------------------------------------

size_t DecodePoints::stretch_at(uint64_t offset) const {
    const auto after = std::upper_bound(starts.begin(), starts.end(), offset);
    return static_cast<size_t>(after - starts.begin()) - 1;
}

size_t DecodePoints::point_before(size_t stretch) const {
    while (!is_point(stretch)) --stretch;  // the first one is a point
    return stretch;
}

size_t DecodePoints::next_point(size_t stretch) const {
    do ++stretch;
    while (stretch < size() && !is_point(stretch));
    return stretch;
}

uint64_t DecodePoints::input_end(size_t stretch, uint64_t file_size) const {
    const size_t next = next_point(stretch);
    return next < size() ? places[next] / 8 + (places[next] % 8 != 0 ? 1 : 0) : file_size;
}

Bytes DecodePoints::window(size_t stretch) const {
    const size_t begin = stretch == 0 ? 0 : window_ends[stretch - 1];
    return Bytes(windows).subspan(begin, window_ends[stretch] - begin);
}

const char* DecodePoints::fault(uint64_t file_size) const {
    const size_t count = size();
    if (sums.size() != count || places.size() != count || window_ends.size() != count)
        return "has columns of points of different lengths";
    if ((count == 0) != (length == 0)) return "has no points, or points of nothing";
    if (count == 0) return windows.empty() ? nullptr : "has windows of no point";
    if (starts[0] != 0 || !is_point(0)) return "has no point at the start";
    if (starts.back() >= length) return "has a point outside of the shard";
    uint64_t place = 0;
    uint32_t window_end = 0;
    for (size_t i = 0; i < count; ++i) {
        if (end(i) <= starts[i]) return "has points that do not ascend";
        if (end(i) - starts[i] > longest) return "has a stretch that is too long";
        if (window_ends[i] < window_end || window_ends[i] > windows.size())
            return "has a window outside of the windows";
        const uint32_t window_bytes = window_ends[i] - window_end;
        window_end = window_ends[i];
        // What the zlib format adds to bytes that it cannot make smaller.
        if (window_bytes > window_size + 64) return "has a window that is too large";
        if (!is_point(i)) {
            if (window_bytes > 0) return "has a window without a point";
            continue;
        }
        if (places[i] / 8 >= file_size || (i > 0 && places[i] <= place))
            return "has points that do not ascend in the shard";
        place = places[i];
        if (window_bytes > 0 ? codec != "gzip" : place % 8 != 0)
            return "has a point inside a frame that has none";
    }
    return window_end == windows.size() ? nullptr : "has windows of no point";
}

// ---- Recording ----------------------------------------------------------------------------------

struct PointRecorder::Hash {
    XXH3_state_t state;
};

void PointRecorder::Free::operator()(Hash* hash) const {
    delete hash;
}

void PointRecorder::frame(uint64_t place, uint64_t offset) {
    if (any_ && offset - last_ < DecodePoints::least) return;
    any_ = true;
    last_ = offset;
    ahead_.push_back({8 * place, offset, {}});
}

bool PointRecorder::wants_block(uint64_t offset) const {
    return offset - last_ >= DecodePoints::inside;
}

void PointRecorder::block(uint64_t place_bits, uint64_t offset, Bytes window) {
    struct Release {
        void operator()(libdeflate_compressor* deflate) const {
            libdeflate_free_compressor(deflate);
        }
    };
    const std::unique_ptr<libdeflate_compressor, Release> deflate(libdeflate_alloc_compressor(6));
    if (!deflate) throw std::bad_alloc();
    std::vector<uint8_t> packed(libdeflate_zlib_compress_bound(deflate.get(), window.size()));
    packed.resize(libdeflate_zlib_compress(deflate.get(), window.data(), window.size(),
                                           packed.data(), packed.size()));
    last_ = offset;
    ahead_.push_back({place_bits, offset, std::move(packed)});
}

void PointRecorder::end_stretch() {
    if (hash_) points_.sums.push_back(XXH3_64bits_digest(&hash_->state));
}

void PointRecorder::begin_stretch(Place place) {
    end_stretch();
    if (!hash_) hash_.reset(new Hash);
    XXH3_64bits_reset(&hash_->state);
    if (points_.windows.size() + place.window.size() > std::numeric_limits<uint32_t>::max())
        throw Error(SHF_E_LIMIT, "the index of this shard would be larger than 4 GiB",
                    "split the shard");
    points_.starts.push_back(place.offset);
    points_.places.push_back(place.place);
    points_.windows.insert(points_.windows.end(), place.window.begin(), place.window.end());
    points_.window_ends.push_back(static_cast<uint32_t>(points_.windows.size()));
}

void PointRecorder::bytes(Bytes output) {
    while (!output.empty()) {
        // Frames without content leave places at the same offset; the first of them is the point.
        if (!ahead_.empty() && ahead_.front().offset == points_.length) {
            begin_stretch(std::move(ahead_.front()));
            ahead_.pop_front();
        } else if (points_.length - points_.starts.back() == DecodePoints::longest) {
            begin_stretch({DecodePoints::none, points_.length, {}});
        }
        uint64_t end = points_.starts.back() + DecodePoints::longest;
        if (!ahead_.empty()) end = std::min(end, ahead_.front().offset);
        const auto count =
            static_cast<size_t>(std::min<uint64_t>(output.size(), end - points_.length));
        XXH3_64bits_update(&hash_->state, output.data(), count);
        points_.length += count;
        output = output.subspan(count);
    }
}

DecodePoints PointRecorder::finish(std::string_view codec) {
    end_stretch();
    hash_.reset();
    points_.codec = codec;
    return std::move(points_);
}

}  // namespace shf
