#include "feed/payload_packing.h"

#include "codec/codec.h"
#include "codec/encoder.h"
#include "core/error.h"

#include <algorithm>
#include <string>

namespace shf {

namespace {

// The fastest ones: what is sent is waited for.
constexpr uint64_t packing_level = 1;

[[noreturn]] void throw_damaged_payload(const std::string& what) {
    throw Error(SHF_E_INTEGRITY, "a compressed message of the feed was damaged on its way: " + what,
                "use encryption (feed_server_key) or another network");
}

}  // namespace

PayloadPacker::PayloadPacker(FeedCompression compression) : compression_(compression) {}
PayloadPacker::~PayloadPacker() = default;

std::span<const uint8_t> PayloadPacker::pack(std::span<const uint8_t> payload) {
    if (compression_ == FeedCompression::none || payload.size() > largest_packed_payload) return {};
    if (!encoder_)
        encoder_ = make_encoder(
            compression_ == FeedCompression::lz4 ? Compression::lz4 : Compression::zstd,
            packing_level);
    encoder_->encode(payload, packed_);
    if (packed_.size() >= payload.size()) return {};
    return packed_;
}

PayloadUnpacker::PayloadUnpacker() = default;
PayloadUnpacker::~PayloadUnpacker() = default;

Codec& PayloadUnpacker::codec_of(FeedCompression compression) {
    std::unique_ptr<Codec>& codec = compression == FeedCompression::lz4 ? lz4_ : zstd_;
    if (!codec)
        codec =
            compression == FeedCompression::lz4 ? make_lz4() : make_zstd(largest_packed_payload);
    return *codec;
}

void PayloadUnpacker::unpack(FeedCompression compression, std::span<const uint8_t> packed,
                             std::span<uint8_t> out) {
    Codec& codec = codec_of(compression);
    Step step = codec.begin(packed.first(std::min(packed.size(), frame_head)));
    uint8_t beyond = 0;  // the end of the frame comes when all bytes are out
    while (step.state == Step::more) {
        const bool full = out.empty();
        step = codec.decode(packed, full ? std::span(&beyond, 1) : out);
        packed = packed.subspan(step.consumed);
        if (full && step.produced > 0) throw_damaged_payload("it is larger than it says");
        if (!full) out = out.subspan(step.produced);
        if (step.state == Step::more && step.consumed == 0 && step.produced == 0 && packed.empty())
            throw_damaged_payload("it is cut");
    }
    if (step.state == Step::failed) throw_damaged_payload(codec.fault("").cause);
    if (!out.empty() || !packed.empty()) throw_damaged_payload("it is not as long as it says");
}

}  // namespace shf
