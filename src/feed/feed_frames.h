// What a server of a feed and its consumers say to each other. Every message is a sealed map
// (core/sealed_map.h), which has a version and a checksum; that of a block has the payload as a
// second part. docs/feed.md describes them.
#pragma once

#include "core/error.h"
#include "core/options.h"
#include "order/lane_state.h"

#include <shardfeed.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

enum class FrameType : uint8_t {
    hello = 1,  // a consumer: who it is, and its options
    welcome,    // a server: what it feeds
    refused,    // likewise: it does not feed this consumer
    open,       // a consumer wants a lane from a position on
    credit,     // it may be sent so many blocks more
    close,      // it does not want the lane any more
    block,      // samples of a lane
    epoch_end,  // the lane has given all of an epoch
    fault,      // the lane ended in a fault
    ping,       // is anybody there?
    pong,
    bye,    // a consumer goes
    drain,  // a server goes, and other servers are to continue its lanes
};

struct HelloFrame {
    std::string token;
    // The options that say which samples come when, one "name=value" on each line.
    std::string options;
};

struct WelcomeFrame {
    std::vector<std::string> shards;  // redacted URLs, in the order of the list
    bool rows = false;                // samples are decoded
    std::string decode;               // as, then
    std::vector<uint32_t> counts;     // samples of each shard, where the option even needs them
};

// Payload of a message that a consumer may ask for.
inline constexpr uint64_t least_block = 4 << 10, largest_block = 1 << 20;

struct OpenFrame {
    uint64_t opening = 0;      // its number among those of the consumer
    uint64_t block_bytes = 0;  // from least_block to largest_block
    uint64_t credit = 0;       // messages
    uint64_t epochs = 1;       // 0: no end
    LaneState from;
};

// What was skipped under on_error.
struct SkippedFault {
    Fault fault;
    bool whole_shard = false;
    uint32_t before = 0;  // sample of the message; those that come after the last one: their number
};

// What reading a lane counts for its consumer.
inline constexpr std::array<int32_t, 13> lane_counters = {
    SHF_STAT_SHARDS,          SHF_STAT_IGNORED_MEMBERS,    SHF_STAT_DIRECTORIES,
    SHF_STAT_LINKS,           SHF_STAT_SPECIALS,           SHF_STAT_SPARSE,
    SHF_STAT_UNKNOWN_TYPES,   SHF_STAT_SIZE_DISAGREEMENTS, SHF_STAT_MISSING_END_MARKERS,
    SHF_STAT_TRAILING,        SHF_STAT_SUFFIX_MISMATCHES,  SHF_STAT_EMPTY_SHARDS,
    SHF_STAT_FILTERED_SAMPLES};
using LaneCounts = std::array<uint64_t, lane_counters.size()>;

// What messages about a lane have in common.
struct LaneFrame {
    uint64_t opening = 0;
    uint64_t epoch = 0;
    LaneState after;      // the position of the lane after it
    LaneCounts counts{};  // of lane_counters, since the last message
    std::vector<SkippedFault> skipped;
    // Of the epoch so far: a shard could be opened, or why the first one could not.
    bool opened = false;
    std::optional<Fault> unopened;
};

// The tables of a block: see feed_block.h.
struct BlockFrame : LaneFrame {
    uint32_t samples = 0;
    bool rows = false;
    std::vector<uint8_t> origins, schemas, keys;     // texts, with their lengths in front
    std::vector<uint32_t> origin, schema, key_size;  // of each sample
    std::vector<uint64_t> offset;                    // likewise
    std::vector<uint64_t> field_size;                // of each field
    uint64_t payload_sum = 0;                        // XXH3-64
    // How the payload is compressed, if it is, and its size without that, which is a claim. The sum
    // is that of the payload without it.
    FeedCompression packing = FeedCompression::none;
    uint64_t unpacked_size = 0;
};

FrameType type_of(std::span<const uint8_t> frame);  // throws Error(FORMAT, INTEGRITY, UNSUPPORTED)

std::vector<uint8_t> encode(const HelloFrame& frame);
std::vector<uint8_t> encode(const WelcomeFrame& frame);
std::vector<uint8_t> encode(const OpenFrame& frame);
std::vector<uint8_t> encode(const BlockFrame& frame);
std::vector<uint8_t> encode_epoch_end(const LaneFrame& frame);
std::vector<uint8_t> encode_refused(const Fault& fault);
std::vector<uint8_t> encode_fault_of_lane(uint64_t opening, const Fault& fault);
std::vector<uint8_t> encode_credit(uint64_t opening, uint64_t blocks);
std::vector<uint8_t> encode_close(uint64_t opening);
std::vector<uint8_t> encode_plain(FrameType type);  // ping, pong, bye, drain

// All throw Error(FORMAT, INTEGRITY, UNSUPPORTED), and take no memory that the bytes only claim.
HelloFrame decode_hello(std::span<const uint8_t> frame);
WelcomeFrame decode_welcome(std::span<const uint8_t> frame);
OpenFrame decode_open(std::span<const uint8_t> frame);
BlockFrame decode_block(std::span<const uint8_t> frame);
LaneFrame decode_epoch_end(std::span<const uint8_t> frame);
Fault decode_refused(std::span<const uint8_t> frame);
std::pair<uint64_t, Fault> decode_fault_of_lane(std::span<const uint8_t> frame);
std::pair<uint64_t, uint64_t> decode_credit(std::span<const uint8_t> frame);
uint64_t decode_close(std::span<const uint8_t> frame);

// Texts one after another, each behind its length.
void append_text(std::vector<uint8_t>& out, std::string_view text);
std::vector<std::string> texts_of(std::span<const uint8_t> bytes);  // throws Error(FORMAT)

// Error(FORMAT): the message WHAT.
[[noreturn]] void throw_damaged_frame(const std::string& what);

}  // namespace shf
