// Fields that are compressed, as the end of their name says: "json.gz", "npy.zst".
#pragma once

#include "codec/codec.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace shf {

struct Options;

enum class FieldCodec : uint8_t { none, gzip, zstd };

// The codec that the part after the last dot of a field's name says, and the name before it:
// "json.gz" is gzip and "json", "gz" is gzip and "", "json" is none and "json".
std::pair<FieldCodec, std::string_view> field_codec(std::string_view name);

struct UnpackLimits {
    uint64_t bytes;   // that may come out
    uint64_t window;  // that a zstd frame may ask for

    explicit UnpackLimits(const Options& options);
    constexpr UnpackLimits(uint64_t most_bytes, uint64_t most_window)
        : bytes(most_bytes), window(most_window) {}
};

// Memory for what comes out of a field; used again, and not cleared.
class UnpackedField {
  public:
    // What is kept from field to field; the memory of one large field must not stay.
    static constexpr size_t most_kept = size_t{16} << 20;

    [[nodiscard]] std::span<const uint8_t> bytes() const { return {memory_.get(), size_}; }
    void drop_large_piece() noexcept {
        if (capacity_ > most_kept) *this = {};
    }

  private:
    friend class FieldUnpacker;
    std::span<uint8_t> room(uint64_t wanted, uint64_t most);

    std::unique_ptr<uint8_t[]> memory_;
    size_t capacity_ = 0, size_ = 0;
};

// Keeps its decoders from field to field. One thread at a time.
class FieldUnpacker {
  public:
    // All that is in the field, whose frames or members follow one another, checked by the
    // checksums that they have. Valid until `out` is used again. Throws Error, without shard and
    // member: FORMAT (damaged, or something else), TRUNCATED, INTEGRITY (a checksum), LIMIT,
    // UNSUPPORTED (zstd with a dictionary), NOMEM; and std::bad_alloc. `codec` is not none.
    std::span<const uint8_t> unpack(FieldCodec codec, std::span<const uint8_t> field,
                                    const UnpackLimits& limits, UnpackedField& out);

  private:
    Codec& decoder(FieldCodec codec, uint64_t window);

    std::unique_ptr<Codec> gzip_, zstd_;
    uint64_t window_ = 0;  // of zstd_
};

// What a decoding thread keeps for compressed fields.
struct UnpackScratch {
    FieldUnpacker unpacker;
    UnpackedField field, image;  // the image in which boxes lie
};

}  // namespace shf
