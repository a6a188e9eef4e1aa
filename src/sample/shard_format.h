// Which format a shard has: the one place that decides between them.
#pragma once

#include "io/source.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace shf {

struct Options;

enum class ShardFormat : uint8_t {
    tar,
    compressed_tar,
    zip,
    other,  // what libarchive reads: codec/other_archive.h
};

// Reads the first bytes of a source that can be read at any offset. They decide, unless data may
// stand before a ZIP file (zip_prefix=allow) and nothing else starts like that: then, and for a
// file that ends in ".zip", it is a ZIP file. What is none of them is a tar, whose reader says what
// is wrong. Throws what reading throws.
ShardFormat shard_format(Source& source, std::string_view url, const Options& options);

// The same from the first `shard_head` bytes of the shard, or all that it has, which do not show an
// image of ISO 9660.
inline constexpr size_t shard_head = 512;
ShardFormat shard_format(std::span<const uint8_t> head, std::string_view url,
                         const Options& options);

}  // namespace shf
