#include "zip/zip_pieces.h"

#include "core/checksum.h"
#include "core/options.h"

#include <algorithm>

namespace shf {

namespace {

// libdeflate is twice as fast as what decodes in pieces, and takes entries as a whole.
constexpr uint64_t largest_whole = uint64_t{1} << 20;
// Bytes read at once, so that a cancel is seen soon.
constexpr size_t longest_read = 16 * 1024 * 1024;

bool taken_whole(const ZipEntry& entry) {
    return entry.method != 0 && std::max(entry.size, entry.stored_size) <= largest_whole;
}

}  // namespace

void ZipPieces::start(size_t index) {
    index_ = index;
    open_ = false;
    decoder_.reset();
}

size_t ZipPieces::read(std::span<uint8_t> out) {
    if (!open_) open();
    const ZipEntry& entry = directory_.entry(index_);
    if (taken_whole(entry)) {
        const size_t count = std::min(out.size(), held_.size() - held_begin_);
        std::copy_n(held_.begin() + static_cast<ptrdiff_t>(held_begin_), count, out.begin());
        held_begin_ += count;
        return count;
    }
    try {
        const size_t count = entry.method == 0 ? read_stored(out) : decode(out);
        crc_ = crc32(out.first(count), crc_);
        left_ -= count;
        if (left_ == 0) (void)decode({});
        if (left_ == 0 && crc_ != entry.crc)
            throw Error(SHF_E_INTEGRITY, "the CRC of the data does not match",
                        "copy the file again");
        return count;
    } catch (const Error& error) {
        reader_.throw_named(index_, error.fault());
    }
}

void ZipPieces::open() {
    const ZipEntry& entry = directory_.entry(index_);
    held_begin_ = 0;
    if (taken_whole(entry)) {
        held_.resize(static_cast<size_t>(entry.size));
        reader_.read(index_, held_, scratch_);
    } else {
        at_ = reader_.find_data(index_);
        held_.clear();
        stored_left_ = entry.stored_size;
        left_ = entry.size;
        crc_ = 0;
        if (entry.method != 0) decoder_.emplace(entry, options_);
    }
    open_ = true;
}

// Fills `out` with the next stored bytes.
void ZipPieces::fetch(std::span<uint8_t> out) {
    if (source_.read_scattered(at_, {&out, 1}) < out.size())
        throw Error(SHF_E_TRUNCATED, "the file ends inside the entry", "copy it again");
    at_ += out.size();
    stored_left_ -= out.size();
}

size_t ZipPieces::read_stored(std::span<uint8_t> out) {
    const auto count =
        static_cast<size_t>(std::min<uint64_t>(std::min(out.size(), longest_read), stored_left_));
    if (count > 0) fetch(out.first(count));
    return count;
}

size_t ZipPieces::decode(std::span<uint8_t> out) {
    while (decoder_) {
        const std::span<const uint8_t> in = std::span(held_).subspan(held_begin_);
        const ZipDecoder::Progress done = decoder_->decode(in, stored_left_, out);
        held_begin_ += done.consumed;
        if (done.ended) decoder_.reset();
        if (done.produced > 0) return done.produced;
        if (done.consumed > 0 || stored_left_ == 0) continue;
        // What is left goes to the front of a full piece.
        held_.erase(held_.begin(), held_.begin() + static_cast<ptrdiff_t>(held_begin_));
        held_begin_ = 0;
        const size_t kept = held_.size();
        held_.resize(
            static_cast<size_t>(std::min<uint64_t>(ZipDecoder::piece, kept + stored_left_)));
        fetch(std::span(held_).subspan(kept));
    }
    return 0;
}

}  // namespace shf
