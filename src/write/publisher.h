// Whole shards, on their way to their names.
#pragma once

#include "index/shard_index.h"
#include "io/sink.h"
#include "write/other_indexes.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shf {

struct PublishedShard {
    std::string url;      // as the caller has given it, with its number
    std::string digest;   // XXH3-128 of the file, in hexadecimal
    std::string index;    // path of its index; empty: none was made
    std::string token{};  // of what was prepared and not published (prepared_shard.h); else empty
    uint64_t samples = 0;
    uint64_t bytes = 0;    // of the file
    uint64_t payload = 0;  // of all fields
};

// A shard that has all of its bytes.
struct WholeShard {
    std::string target;  // the URL that it is written to, as open_sink takes it
    std::unique_ptr<Sink> sink;
    std::optional<IndexRows> rows;            // nothing: no index is wanted
    uint64_t end = 0;                         // where the end marker of the tar starts
    std::optional<DecodePoints> points = {};  // of a compressed tar, for its index
    ForeignIndexes indexes = {};              // of other tools
    ShardIdentity identity = {};              // as its index says it, where it cannot be read
    bool published = false;
    PublishedShard shard;
};

// Publishes shards one after another while the next one is written: to bring a shard to the disk
// takes as long as to write it. One thread at a time; the thread inside is its own.
class Publisher {
  public:
    // `options` and `cancel` must outlive it.
    Publisher(const Options& options, const Cancel& cancel);
    // Discards what is not published yet.
    ~Publisher();
    Publisher(const Publisher&) = delete;
    Publisher& operator=(const Publisher&) = delete;

    // Takes a shard over; waits while another one waits to be published. Throws Error: what one
    // before it has failed with.
    void add(WholeShard whole);
    // Returns when all are published. Throws Error.
    void wait();
    // What was published since the last call, in order.
    std::vector<PublishedShard> take() noexcept;

  private:
    struct State;
    const std::unique_ptr<State> state_;
};

}  // namespace shf
