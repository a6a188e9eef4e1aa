// What turns the bytes of one kind of field into an array.
#pragma once

#include "core/array.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shf {

struct AudioScratch;
struct ImageScratch;
struct UnpackScratch;

// What a decoding thread keeps between fields: memory, and handles that are dear to make.
struct DecodeScratch {
    DecodeScratch();
    ~DecodeScratch();
    DecodeScratch(const DecodeScratch&) = delete;
    DecodeScratch& operator=(const DecodeScratch&) = delete;

    std::unique_ptr<ImageScratch> image;    // made by the first image
    std::unique_ptr<AudioScratch> audio;    // by the first sound
    std::unique_ptr<UnpackScratch> unpack;  // by the first compressed field
};

// What a field becomes, and what that takes.
struct Measured {
    ArrayType type;
    // decode() is hardly more than a copy: handing it to another thread, whose core must fetch the
    // bytes first, takes longer.
    bool cheap = false;
};

class Decoder {
  public:
    virtual ~Decoder() = default;

    // The array that the field is, from its headers. Nothing larger than max_decoded is
    // allocated. `random` is the key of the
    // sample's random choices: the same for all of its fields. Throws Error, without shard and
    // member: FORMAT, UNSUPPORTED, LIMIT (over max_decoded).
    [[nodiscard]] virtual Measured measure(std::span<const uint8_t> field,
                                           uint64_t random) const = 0;

    // What measure() says of a field of `size` bytes that begins with `start`, and where its bytes
    // begin, when the array is nothing but a copy of them; nothing when it is more, or `start` does
    // not tell. Throws as measure().
    struct Copied {
        ArrayType type;
        size_t begin = 0;
    };
    [[nodiscard]] virtual std::optional<Copied> copied(std::span<const uint8_t> /*start*/,
                                                       uint64_t /*size*/) const {
        return std::nullopt;
    }

    // What is chosen for this field, at random and by its size, as a JSON object. Throws Error as
    // measure().
    [[nodiscard]] virtual std::string record(std::span<const uint8_t> /*field*/,
                                             uint64_t /*random*/) const {
        return "{}";
    }

    // Writes the array. `type` is what measure() said of this field, `out` has type.bytes().
    // Any number of threads, each with its own scratch. Throws Error as measure(), and
    // std::bad_alloc; `out` then has undefined contents.
    virtual void decode(std::span<const uint8_t> field, uint64_t random, const ArrayType& type,
                        std::span<uint8_t> out, DecodeScratch& scratch) const = 0;

    // The same of a field that lies in an image, as boxes do: `image` is the field of that image.
    [[nodiscard]] virtual Measured measure_beside(std::span<const uint8_t> /*image*/,
                                                  std::span<const uint8_t> field,
                                                  uint64_t random) const {
        return measure(field, random);
    }
    virtual void decode_beside(std::span<const uint8_t> /*image*/, std::span<const uint8_t> field,
                               uint64_t random, const ArrayType& type, std::span<uint8_t> out,
                               DecodeScratch& scratch) const {
        decode(field, random, type, out, scratch);
    }
};

}  // namespace shf
