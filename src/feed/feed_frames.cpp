#include "feed/feed_frames.h"

#include "core/fault_encoding.h"
#include "core/little_endian.h"
#include "core/sealed_map.h"
#include "order/state_encoding.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace shf {

namespace {

constexpr SealedKind feed_kind = {.magic = "shardfeed-feed",
                                  .version = 1,
                                  .what = "the message of a feed",
                                  .help = "use one version of shardfeed on all machines"};

std::vector<uint8_t> finish_frame(SealedWriter& writer) {
    const std::span<const uint8_t> bytes = writer.finish(feed_kind);
    return {bytes.begin(), bytes.end()};
}

SealedWriter& begin_frame(SealedWriter& writer, FrameType type) {
    writer.put("type", static_cast<uint64_t>(type));
    return writer;
}

std::string frame_text(const SealedMap& map, std::string_view name) {
    const std::span<const uint8_t> bytes = map.bytes(name);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <typename Number>
std::vector<Number> column_at(const SealedMap& map, std::string_view name) {
    const std::span<const uint8_t> bytes = map.bytes(name);
    if (bytes.size() % sizeof(Number) != 0) throw_damaged_frame("has a column that is cut");
    std::vector<Number> column(bytes.size() / sizeof(Number));
    if (!column.empty()) std::memcpy(column.data(), bytes.data(), bytes.size());
    return column;
}

std::vector<uint8_t> bytes_at(const SealedMap& map, std::string_view name) {
    const std::span<const uint8_t> bytes = map.bytes(name);
    return {bytes.begin(), bytes.end()};
}

// A lane alone, in the form of a saved state.
void put_lane(SealedWriter& writer, std::string_view name, const LaneState& lane) {
    StreamState state;
    state.lanes_in_all = uint64_t{lane.lane} + 1;
    state.position.lanes.push_back(lane);
    writer.put(name, encode(state));
}

LaneState lane_at(const SealedMap& map, std::string_view name) {
    StreamState state = decode_state(map.bytes(name));
    if (state.position.lanes.size() != 1 || !state.position.parts.empty())
        throw_damaged_frame("has no position of one lane");
    return std::move(state.position.lanes[0]);
}

void put_common(SealedWriter& writer, const LaneFrame& frame) {
    writer.put("opening", frame.opening);
    writer.put("epoch", frame.epoch);
    put_lane(writer, "after", frame.after);
    writer.put("counts", std::vector<uint64_t>(frame.counts.begin(), frame.counts.end()));
    std::vector<uint8_t> skipped;
    for (const SkippedFault& skip : frame.skipped) {
        const std::vector<uint8_t> fault = encode_fault(skip.fault);
        skipped.push_back(skip.whole_shard ? 1 : 0);
        for (unsigned i = 0; i < 4; ++i)
            skipped.push_back(static_cast<uint8_t>(skip.before >> (8 * i)));
        append_text(skipped, {reinterpret_cast<const char*>(fault.data()), fault.size()});
    }
    writer.put("skipped", skipped);
    writer.put("opened", uint64_t{frame.opened});
    writer.put("unopened", frame.unopened ? encode_fault(*frame.unopened) : std::vector<uint8_t>());
}

// The text at the front of `bytes`, which is taken off.
std::string_view take_frame_text(std::span<const uint8_t>& bytes) {
    if (bytes.size() < 4) throw_damaged_frame("has a text that is cut");
    const size_t size = le32(bytes.data());
    if (size > bytes.size() - 4) throw_damaged_frame("has a text that is cut");
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + 4, size);
    bytes = bytes.subspan(4 + size);
    return text;
}

std::span<const uint8_t> frame_bytes(std::string_view text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

void read_common(const SealedMap& map, LaneFrame& frame) {
    frame.opening = map.number("opening");
    frame.epoch = map.number("epoch");
    frame.after = lane_at(map, "after");
    const auto counts = column_at<uint64_t>(map, "counts");
    if (counts.size() != frame.counts.size()) throw_damaged_frame("counts other things");
    std::copy(counts.begin(), counts.end(), frame.counts.begin());
    std::span<const uint8_t> skipped = map.bytes("skipped");
    while (!skipped.empty()) {
        if (skipped.size() < 5) throw_damaged_frame("has a skip that is cut");
        const bool whole = skipped[0] != 0;
        const uint32_t before = le32(skipped.data() + 1);
        skipped = skipped.subspan(5);
        frame.skipped.push_back(
            {decode_fault(frame_bytes(take_frame_text(skipped))), whole, before});
    }
    frame.opened = map.number("opened") != 0;
    if (const std::span<const uint8_t> fault = map.bytes("unopened"); !fault.empty())
        frame.unopened = decode_fault(fault);
}

}  // namespace

void throw_damaged_frame(const std::string& what) {
    throw_damaged(feed_kind, what);
}

void append_text(std::vector<uint8_t>& out, std::string_view text) {
    for (unsigned i = 0; i < 4; ++i) out.push_back(static_cast<uint8_t>(text.size() >> (8 * i)));
    out.insert(out.end(), text.begin(), text.end());
}

std::vector<std::string> texts_of(std::span<const uint8_t> bytes) {
    std::vector<std::string> texts;
    while (!bytes.empty()) texts.emplace_back(take_frame_text(bytes));
    return texts;
}

FrameType type_of(std::span<const uint8_t> frame) {
    const SealedMap map(frame, feed_kind);
    const uint64_t type = map.number("type");
    if (type < static_cast<uint64_t>(FrameType::hello) ||
        type > static_cast<uint64_t>(FrameType::drain))
        throw_damaged_frame("is of an unknown type");
    return static_cast<FrameType>(type);
}

std::vector<uint8_t> encode(const HelloFrame& frame) {
    SealedWriter writer;
    begin_frame(writer, FrameType::hello).put("token", std::string_view(frame.token));
    writer.put("options", std::string_view(frame.options));
    return finish_frame(writer);
}

HelloFrame decode_hello(std::span<const uint8_t> frame) {
    const SealedMap map(frame, feed_kind);
    return {.token = frame_text(map, "token"), .options = frame_text(map, "options")};
}

std::vector<uint8_t> encode(const WelcomeFrame& frame) {
    SealedWriter writer;
    std::vector<uint8_t> shards;
    for (const std::string& shard : frame.shards) append_text(shards, shard);
    begin_frame(writer, FrameType::welcome).put("shards", shards);
    writer.put("rows", uint64_t{frame.rows});
    writer.put("decode", std::string_view(frame.decode));
    writer.put("counts", frame.counts);
    return finish_frame(writer);
}

WelcomeFrame decode_welcome(std::span<const uint8_t> frame) {
    const SealedMap map(frame, feed_kind);
    WelcomeFrame welcome{.shards = texts_of(map.bytes("shards")),
                         .rows = map.number("rows") != 0,
                         .decode = frame_text(map, "decode"),
                         .counts = column_at<uint32_t>(map, "counts")};
    if (!welcome.counts.empty() && welcome.counts.size() != welcome.shards.size())
        throw_damaged_frame("counts the samples of other shards");
    return welcome;
}

std::vector<uint8_t> encode(const OpenFrame& frame) {
    SealedWriter writer;
    begin_frame(writer, FrameType::open).put("opening", frame.opening);
    writer.put("block_bytes", frame.block_bytes);
    writer.put("credit", frame.credit);
    writer.put("epochs", frame.epochs);
    put_lane(writer, "from", frame.from);
    return finish_frame(writer);
}

OpenFrame decode_open(std::span<const uint8_t> frame) {
    const SealedMap map(frame, feed_kind);
    const uint64_t block_bytes = map.number("block_bytes");
    if (block_bytes < least_block || block_bytes > largest_block)
        throw_damaged_frame("asks for messages of an unknown size");
    return {.opening = map.number("opening"),
            .block_bytes = block_bytes,
            .credit = map.number("credit"),
            .epochs = map.number("epochs"),
            .from = lane_at(map, "from")};
}

std::vector<uint8_t> encode(const BlockFrame& frame) {
    SealedWriter writer;
    put_common(begin_frame(writer, FrameType::block), frame);
    writer.put("samples", uint64_t{frame.samples});
    writer.put("rows", uint64_t{frame.rows});
    writer.put("origins", frame.origins);
    writer.put("schemas", frame.schemas);
    writer.put("keys", frame.keys);
    writer.put("origin", frame.origin);
    writer.put("schema", frame.schema);
    writer.put("key_size", frame.key_size);
    writer.put("offset", frame.offset);
    writer.put("field_size", frame.field_size);
    writer.put("payload_sum", frame.payload_sum);
    if (frame.packing != FeedCompression::none) {
        writer.put("packing", static_cast<uint64_t>(frame.packing));
        writer.put("unpacked_size", frame.unpacked_size);
    }
    return finish_frame(writer);
}

BlockFrame decode_block(std::span<const uint8_t> frame) {
    const SealedMap map(frame, feed_kind);
    BlockFrame block;
    read_common(map, block);
    const uint64_t samples = map.number("samples");
    block.rows = map.number("rows") != 0;
    block.origins = bytes_at(map, "origins");
    block.schemas = bytes_at(map, "schemas");
    block.keys = bytes_at(map, "keys");
    block.origin = column_at<uint32_t>(map, "origin");
    block.schema = column_at<uint32_t>(map, "schema");
    block.key_size = column_at<uint32_t>(map, "key_size");
    block.offset = column_at<uint64_t>(map, "offset");
    block.field_size = column_at<uint64_t>(map, "field_size");
    block.payload_sum = map.number("payload_sum");
    const uint64_t packing = map.number_or_0("packing");
    if (packing > static_cast<uint64_t>(FeedCompression::zstd))
        throw_damaged_frame("has a payload that is compressed in an unknown way");
    block.packing = static_cast<FeedCompression>(packing);
    block.unpacked_size = map.number_or_0("unpacked_size");
    if (block.origin.size() != samples || block.schema.size() != samples ||
        block.key_size.size() != samples || block.offset.size() != samples)
        throw_damaged_frame("has columns of unequal length");
    block.samples = static_cast<uint32_t>(samples);
    return block;
}

std::vector<uint8_t> encode_epoch_end(const LaneFrame& frame) {
    SealedWriter writer;
    put_common(begin_frame(writer, FrameType::epoch_end), frame);
    return finish_frame(writer);
}

LaneFrame decode_epoch_end(std::span<const uint8_t> frame) {
    LaneFrame end;
    read_common(SealedMap(frame, feed_kind), end);
    return end;
}

std::vector<uint8_t> encode_refused(const Fault& fault) {
    SealedWriter writer;
    begin_frame(writer, FrameType::refused).put("fault", encode_fault(fault));
    return finish_frame(writer);
}

Fault decode_refused(std::span<const uint8_t> frame) {
    return decode_fault(SealedMap(frame, feed_kind).bytes("fault"));
}

std::vector<uint8_t> encode_fault_of_lane(uint64_t opening, const Fault& fault) {
    SealedWriter writer;
    begin_frame(writer, FrameType::fault).put("opening", opening);
    writer.put("fault", encode_fault(fault));
    return finish_frame(writer);
}

std::pair<uint64_t, Fault> decode_fault_of_lane(std::span<const uint8_t> frame) {
    const SealedMap map(frame, feed_kind);
    return {map.number("opening"), decode_fault(map.bytes("fault"))};
}

std::vector<uint8_t> encode_credit(uint64_t opening, uint64_t blocks) {
    SealedWriter writer;
    begin_frame(writer, FrameType::credit).put("opening", opening);
    writer.put("blocks", blocks);
    return finish_frame(writer);
}

std::pair<uint64_t, uint64_t> decode_credit(std::span<const uint8_t> frame) {
    const SealedMap map(frame, feed_kind);
    return {map.number("opening"), map.number("blocks")};
}

std::vector<uint8_t> encode_close(uint64_t opening) {
    SealedWriter writer;
    begin_frame(writer, FrameType::close).put("opening", opening);
    return finish_frame(writer);
}

uint64_t decode_close(std::span<const uint8_t> frame) {
    return SealedMap(frame, feed_kind).number("opening");
}

std::vector<uint8_t> encode_plain(FrameType type) {
    SealedWriter writer;
    begin_frame(writer, type);
    return finish_frame(writer);
}

}  // namespace shf
