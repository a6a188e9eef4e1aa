// The token of a shard that is whole and has not appeared: all that a process needs to publish it,
// or to discard it, with credentials of its own.
#pragma once

#include "io/prepared_file.h"

#include <optional>
#include <string>
#include <string_view>

namespace shf {

struct Options;
struct SourceContext;

struct PreparedShard {
    std::string digest;  // XXH3-128 of the file, in hexadecimal
    PreparedFile file;
    std::optional<PreparedFile> index;

    bool operator==(const PreparedShard&) const = default;
};

// Lines of text. Throws Error: USAGE for a URL with a secret in it, which a token must not have;
// LIMIT when it would be above most_token.
std::string token_of(const PreparedShard& shard);
// Throws Error(USAGE) for what is no token, is damaged, or was cut.
PreparedShard parse_token(std::string_view token);
inline constexpr size_t most_token = size_t{4} << 20;  // bytes

// The shard, then its index. What has appeared already stays as it is. Throws Error with the name
// of the shard.
void publish_shard(const PreparedShard& shard, const SourceContext& context);
void discard_shard(const PreparedShard& shard, const SourceContext& context);

}  // namespace shf
