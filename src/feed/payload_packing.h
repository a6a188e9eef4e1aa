// Payloads that are compressed on their way, with the codecs that shards have (src/codec).
#pragma once

#include "core/options.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shf {

class Codec;
class Encoder;

// A larger payload, which is one large sample, is sent as it is: memory for what a compressed one
// claims to hold is taken before that is proven.
inline constexpr size_t largest_packed_payload = size_t{64} << 20;

// One thread at a time.
class PayloadPacker {
  public:
    explicit PayloadPacker(FeedCompression compression);
    ~PayloadPacker();
    PayloadPacker(const PayloadPacker&) = delete;
    PayloadPacker& operator=(const PayloadPacker&) = delete;

    [[nodiscard]] FeedCompression compression() const { return compression_; }
    // The payload compressed, valid until the next call; empty where it is to be sent as it is,
    // because it is large or becomes no smaller. Throws Error(NOMEM).
    std::span<const uint8_t> pack(std::span<const uint8_t> payload);

  private:
    const FeedCompression compression_;
    std::unique_ptr<Encoder> encoder_;  // made when it is needed
    std::vector<uint8_t> packed_;
};

// One thread at a time.
class PayloadUnpacker {
  public:
    PayloadUnpacker();
    ~PayloadUnpacker();
    PayloadUnpacker(const PayloadUnpacker&) = delete;
    PayloadUnpacker& operator=(const PayloadUnpacker&) = delete;

    // Fills `out` with what was packed. Throws Error(INTEGRITY) when it is damaged, or of another
    // size.
    void unpack(FeedCompression compression, std::span<const uint8_t> packed,
                std::span<uint8_t> out);

  private:
    Codec& codec_of(FeedCompression compression);

    std::unique_ptr<Codec> lz4_, zstd_;  // made when they are needed
};

}  // namespace shf
