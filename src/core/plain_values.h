// How values of MessagePack begin, for what is a map from names to plain values: numbers, texts and
// bytes (msgpack specification, "Formats"). Nothing here takes memory that the bytes claim to need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace shf {

struct PlainHead {
    enum class Kind : uint8_t { number, text, bytes };
    Kind kind;
    size_t size;     // of the head itself
    uint64_t body;   // bytes that follow it
    uint64_t value;  // of a number that is in its head; otherwise 0
};

// Nothing when `from` starts with another kind of value, or ends within the head.
std::optional<PlainHead> plain_head_of(std::span<const uint8_t> from);

struct PlainMapHead {
    size_t size = 0;     // of the head itself
    size_t entries = 0;  // a name and a value each
};

// Nothing when `from` starts with something else.
std::optional<PlainMapHead> plain_map_head_of(std::span<const uint8_t> from);

}  // namespace shf
