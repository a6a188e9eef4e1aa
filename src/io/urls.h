// Lists of shards: what the caller's URLs expand to, kept as patterns and computed on demand, so
// that ten million shards cost a few hundred bytes and not ten million strings.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shf {

struct Options;

// The URLs of all objects that begin with a URL, in the order of their bytes; nothing when what it
// names has no lists. Throws Error.
using ListObjects = std::function<std::optional<std::vector<std::string>>(const std::string&)>;

class ShardList {
  public:
    // Expands `urls` by the rules of shardfeed.h ("URLs"): "::", ${NAME}, braces, @FILE, ~/ and
    // shell patterns. Reads list files and lists folders and, by `objects`, stores; opens no shard.
    // Who waits for the writer of a list asks Opening whether to continue. Throws Error: USAGE, IO
    // (also when no file matches), LIMIT (more than max_shards), those of `objects`.
    ShardList(std::span<const char* const> urls, const Options& options, ListObjects objects = {});
    ~ShardList();
    ShardList(ShardList&&) noexcept;
    ShardList& operator=(ShardList&&) noexcept;

    [[nodiscard]] uint64_t size() const;
    // URL number `index` < size(), built at each call. Any thread.
    [[nodiscard]] std::string at(uint64_t index) const;
    // Whether one of them may be samples as messages (is_message_url), without a look at each.
    [[nodiscard]] bool has_messages() const { return has_messages_; }

  private:
    struct Segment;
    struct Builder;
    std::vector<Segment> segments_;
    bool has_messages_ = false;
};

// Of the last parts of the redacted URLs, by which shards are known wherever they are mounted, and
// of their order. Of a long list some are enough, evenly spread.
uint64_t hash_of_names(const ShardList& shards);

}  // namespace shf
