#include "codec/stretch_reader.h"

#include "codec/filter.h"
#include "codec/magic.h"
#include "core/little_endian.h"
#include "core/opening.h"
#include "core/options.h"

#include <libdeflate.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string>

namespace shf {

namespace {

constexpr size_t smallest_chunk = size_t{128} << 10, largest_chunk = size_t{8} << 20;

// Whole members are taken into memory up to this size, compressed.
constexpr uint64_t largest_members = uint64_t{16} << 20;

}  // namespace

void StretchReader::FreeDecompressor::operator()(libdeflate_decompressor* inflate) const {
    libdeflate_free_decompressor(inflate);
}

StretchReader::StretchReader(Source& source, const DecodePoints& points, const Options& options)
    : source_(&source),
      points_(points),
      options_(options),
      file_size_(source.size().value_or(0)),
      chunk_(static_cast<size_t>(
          std::clamp<uint64_t>(source.read_cost().at_once, smallest_chunk, largest_chunk))),
      next_(points.size()) {}

StretchReader::~StretchReader() = default;

void StretchReader::read(size_t stretch, std::span<uint8_t> out) {
    const uint64_t limit = points_.input_end(stretch, file_size_);
    const size_t point = points_.point_before(stretch);
    const bool has_members = is_members(stretch);
    // To go on is as good as to start at the point, if nothing lies between.
    const bool goes_on =
        next_ < points_.size() && next_ >= point && next_ <= stretch && !has_members;
    size_t at = goes_on ? next_ : point;
    next_ = points_.size();  // until this one is read
    if (!has_members || !read_members(stretch, out)) {
        if (goes_on)
            limit_ = std::max(limit_, limit);
        else
            start(point, limit);
        for (; at < stretch; ++at) {
            unwanted_.resize(static_cast<size_t>(points_.end(at) - points_.starts[at]));
            decode(at, unwanted_);
        }
        decode(stretch, out);
    }
    if (XXH3_64bits(out.data(), out.size()) != points_.sums[stretch])
        throw fault(stretch, SHF_E_INTEGRITY, "they are not the bytes that the index was made of");
    next_ = stretch + 1;
}

// Whether a stretch is whole gzip members, of a size that may be taken into memory.
bool StretchReader::is_members(size_t stretch) const {
    if (points_.codec != "gzip" || !points_.is_point(stretch) || !points_.window(stretch).empty())
        return false;
    // What follows it must start with a member too.
    const size_t next = stretch + 1;
    if (next < points_.size() && (!points_.is_point(next) || !points_.window(next).empty()))
        return false;
    return points_.input_end(stretch, file_size_) - points_.places[stretch] / 8 <= largest_members;
}

// libdeflate takes less time for whole members than any decoder that can stop in the middle. False:
// one of them is damaged, or is none.
bool StretchReader::read_members(size_t stretch, std::span<uint8_t> out) {
    const uint64_t place = points_.places[stretch] / 8;
    const uint64_t end = points_.input_end(stretch, file_size_);
    const auto size = static_cast<size_t>(end - place);
    if (input_.size() < size) input_.resize(size);
    if (source_->read(place, std::span(input_).first(size)) < size)
        throw fault(stretch, SHF_E_TRUNCATED, "the compressed data ends before them");
    if (!members_) members_.reset(libdeflate_alloc_decompressor());
    if (!members_) throw std::bad_alloc();
    size_t used = 0, made = 0;
    while (made < out.size()) {
        size_t in = 0, its_size = 0;
        if (libdeflate_gzip_decompress_ex(members_.get(), input_.data() + used, size - used,
                                          out.data() + made, out.size() - made, &in,
                                          &its_size) != LIBDEFLATE_SUCCESS)
            return false;
        used += in;
        made += its_size;
    }
    begin_ = used;
    end_ = size;
    position_ = limit_ = end;
    current_ = nullptr;
    return true;
}

// The bytes of `point` are next.
void StretchReader::start(size_t point, uint64_t limit) {
    const uint64_t place = points_.places[point];
    begin_ = end_ = 0;
    position_ = place / 8;
    limit_ = limit;
    current_ = nullptr;
    const Bytes packed = points_.window(point);
    if (packed.empty()) return;
    std::array<uint8_t, DecodePoints::window_size> window;
    size_t size = 0;
    if (!members_) members_.reset(libdeflate_alloc_decompressor());
    if (!members_) throw std::bad_alloc();
    if (libdeflate_zlib_decompress(members_.get(), packed.data(), packed.size(), window.data(),
                                   window.size(), &size) != LIBDEFLATE_SUCCESS ||
        size == 0)
        throw fault(point, SHF_E_FORMAT, "the index has a damaged window");
    uint8_t byte = 0;
    const auto used = static_cast<unsigned>(place % 8);
    if (used > 0) {
        if (!fill()) throw fault(point, SHF_E_TRUNCATED, "the compressed data ends before them");
        byte = available()[0];
        ++begin_;
    }
    rest_ = make_gzip_rest(used > 0 ? 8 - used : 0, byte, Bytes(window).first(size));
    current_ = rest_.get();
}

void StretchReader::decode(size_t stretch, std::span<uint8_t> out) {
    unsigned stalls = 0;
    while (!out.empty()) {
        try {
            if (!current_) begin_frame();
        } catch (const Error& error) {
            if (ends_call(error.code()) || error.fault().offset != no_offset) throw;
            throw fault(stretch, error.code(), error.fault().cause);
        }
        const Step step = current_->decode(available(), out);
        begin_ += step.consumed;
        if (step.state == Step::failed) {
            const Fault inner = current_->fault(copy_again);
            throw fault(stretch, inner.code, points_.codec + ": " + inner.cause);
        }
        out = out.subspan(step.produced);
        if (step.state == Step::end) {
            current_ = nullptr;
            stalls = 0;
        } else if (step.consumed > 0 || step.produced > 0) {
            stalls = 0;
        } else if (begin_ != end_) {
            if (++stalls == 2) throw fault(stretch, SHF_E_FORMAT, "the decoder makes no progress");
        } else if (!fill()) {
            throw fault(stretch, SHF_E_TRUNCATED, "the compressed data ends before them");
        }
    }
}

// Passes what may lie between frames and starts the next one. Throws Error without an offset.
void StretchReader::begin_frame() {
    for (;;) {
        const Bytes held = available();
        const auto other =
            std::find_if(held.begin(), held.end(), [](uint8_t byte) { return byte != 0; });
        begin_ += static_cast<size_t>(other - held.begin());
        if (end_ - begin_ < frame_head && fill()) continue;
        const Bytes head = available();
        const CodecMagic* magic = find_magic(head);
        if (magic && magic->skippable && head.size() >= 8) {
            uint64_t left = uint64_t{8} + le32(head.data() + 4);
            for (;;) {
                const auto count = std::min<uint64_t>(left, end_ - begin_);
                begin_ += static_cast<size_t>(count);
                left -= count;
                if (left == 0 || !fill()) break;
            }
            continue;
        }
        if (head.empty())
            throw Error(SHF_E_TRUNCATED, "the compressed data ends before them", copy_again);
        if (!magic || magic->codec != points_.codec)
            throw Error(SHF_E_FORMAT,
                        "there is no " + points_.codec + " frame where the index says", copy_again);
        if (!codec_) codec_ = make_codec(points_.codec, options_);
        current_ = codec_.get();
        if (current_->begin(head).state != Step::failed) return;
        const Fault inner = current_->fault(copy_again);
        throw Error(inner.code, points_.codec + ": " + inner.cause, inner.help);
    }
}

// Reads more input behind what is left. False at the end of the file.
bool StretchReader::fill() {
    const size_t held = end_ - begin_;
    if (begin_ > 0 && held > 0) std::memmove(input_.data(), input_.data() + begin_, held);
    begin_ = 0;
    end_ = held;
    if (position_ >= file_size_) return false;
    // Up to the next point at once, where that is not far; beyond only for what follows on it.
    uint64_t wanted = chunk_;
    if (position_ < limit_) wanted = std::min<uint64_t>(wanted, limit_ - position_);
    wanted = std::min(wanted, file_size_ - position_);
    if (input_.size() < held + wanted) input_.resize(held + static_cast<size_t>(wanted));
    const size_t count =
        source_->read(position_, std::span(input_).subspan(held, static_cast<size_t>(wanted)));
    position_ += count;
    end_ += count;
    return count > 0;
}

Error StretchReader::fault(size_t stretch, int32_t code, const std::string& cause) const {
    return Error(code,
                 "bytes " + std::to_string(points_.starts[stretch]) + " to " +
                     std::to_string(points_.end(stretch)) + " of the decompressed shard: " + cause,
                 "copy the shard again; if it is right, delete its index", points_.starts[stretch]);
}

}  // namespace shf
