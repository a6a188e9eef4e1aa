// Messages of a feed: what was encoded is decoded, and what is damaged is an error and nothing
// else.
#include "feed/feed_frames.h"
#include "core/error.h"
#include "core/fault_encoding.h"
#include "core/random.h"
#include "feed/feed_block.h"
#include "feed/payload_packing.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace {

using namespace shf;

using Bytes = std::vector<uint8_t>;

Fault some_fault() {
    Fault fault = Error(SHF_E_TRUNCATED, "the shard ends", "copy it again", 512).fault();
    fault.shard = "a.tar";
    fault.key = "key";
    return fault;
}

LaneState some_state() {
    LaneState state = LaneState::at_start(3, 2);
    state.taken = 17;
    state.put = 20;
    state.begun = 1;
    state.shards.push_back({});
    return state;
}

// A field of text, and three small ones.
Bytes some_payload() {
    Bytes payload(50'000);
    for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<uint8_t>(i / 7 % 50);
    return payload;
}

BlockFrame some_block() {
    BlockFrame block;
    block.opening = 4;
    block.epoch = 2;
    block.after = some_state();
    block.skipped.push_back({some_fault(), true, 1});
    block.unopened = some_fault();
    for (size_t i = 0; i < block.counts.size(); ++i) block.counts[i] = 10 + i;
    block.samples = 2;
    append_text(block.origins, std::string(25, '\1') + "a.tar");
    append_text(block.schemas, "jpg/cls/");
    block.keys = {'a', 'b'};
    block.origin = {0, 0};
    block.schema = {0, 0};
    block.key_size = {1, 1};
    block.offset = {0, 1024};
    block.field_size = {3, 1, 2, 1};
    return block;
}

// The same with some_payload(), compressed.
BlockFrame packed_block(FeedCompression packing, uint64_t size) {
    BlockFrame block = some_block();
    block.field_size[0] = size - 4;
    block.packing = packing;
    block.unpacked_size = size;
    return block;
}

std::vector<Bytes> all_frames() {
    return {encode(HelloFrame{"token", "lanes=4\n"}),
            encode(WelcomeFrame{{"a.tar", "b.tar"}, true, "cls:int", {4, 5}}),
            encode(OpenFrame{1, 1 << 20, 4, 1, some_state()}),
            encode(some_block()),
            encode(packed_block(FeedCompression::zstd, 50'000)),
            encode_epoch_end(some_block()),
            encode_refused(some_fault()),
            encode_fault_of_lane(7, some_fault()),
            encode_credit(7, 2),
            encode_close(7),
            encode_plain(FrameType::ping)};
}

// All decoders, whatever the message is.
void decode_all(const Bytes& frame) {
    const std::vector<std::function<void()>> decoders = {
        [&] { (void)type_of(frame); },        [&] { (void)decode_hello(frame); },
        [&] { (void)decode_welcome(frame); }, [&] { (void)decode_open(frame); },
        [&] { (void)decode_block(frame); },   [&] { (void)decode_epoch_end(frame); },
        [&] { (void)decode_refused(frame); }, [&] { (void)decode_fault_of_lane(frame); },
        [&] { (void)decode_credit(frame); },  [&] { (void)decode_close(frame); },
        [&] { (void)decode_fault(frame); }};
    for (const auto& decoder : decoders) {
        try {
            decoder();
        } catch (const Error&) {
            // What it may do.
        }
    }
}

TEST(FeedFrames, are_decoded_as_they_were) {
    const BlockFrame block = decode_block(encode(some_block()));
    EXPECT_EQ(block.opening, 4U);
    EXPECT_EQ(block.after.taken, 17U);
    EXPECT_EQ(block.after.lane, 3U);
    ASSERT_EQ(block.skipped.size(), 1U);
    EXPECT_TRUE(block.skipped[0].whole_shard);
    EXPECT_EQ(block.counts, some_block().counts);
    EXPECT_EQ(block.skipped[0].before, 1U);
    EXPECT_EQ(block.skipped[0].fault.text(), some_fault().text());
    EXPECT_EQ(block.skipped[0].fault.key, "key");
    EXPECT_EQ(block.field_size, some_block().field_size);
    const OpenFrame open = decode_open(encode(OpenFrame{1, 1 << 20, 4, 0, some_state()}));
    EXPECT_EQ(open.epochs, 0U);
    for (const uint64_t size : {uint64_t{0}, least_block - 1, largest_block + 1, UINT64_MAX})
        EXPECT_THROW((void)decode_open(encode(OpenFrame{1, size, 4, 0, some_state()})), Error);
    EXPECT_EQ(open.from.epoch, 2U);
    EXPECT_EQ(decode_welcome(encode(WelcomeFrame{{"a", ""}, false, "", {}})).shards,
              (std::vector<std::string>{"a", ""}));
}

TEST(FeedFrames, that_are_cut_or_changed_are_errors) {
    Random random(Random::sample_shuffle, {1});
    for (const Bytes& frame : all_frames()) {
        for (size_t size = 0; size < frame.size(); ++size)
            decode_all(Bytes(frame.begin(), frame.begin() + static_cast<ptrdiff_t>(size)));
        for (int i = 0; i < 500; ++i) {
            Bytes changed = frame;
            changed[random.next() % changed.size()] ^=
                static_cast<uint8_t>(1 + random.next() % 255);
            decode_all(changed);
            EXPECT_THROW((void)type_of(changed), Error);
        }
    }
}

// Tables that are sealed well and say nonsense.
TEST(FeedFrames, with_nonsense_in_their_tables_are_errors) {
    Options options;
    Pool* const pool = Pool::make(options);
    const Cancel cancel;
    const Bytes payload(7);
    const auto read = [&](const std::function<void(BlockFrame&)>& change) {
        BlockFrame block = some_block();
        FeedBlockReader reader(*pool, cancel);
        block.payload_sum = sum_of_payload(payload);
        change(block);
        return reader.read(decode_block(encode(block)), FeedPart(payload), 0).size();
    };
    EXPECT_EQ(read([](BlockFrame&) {}), 1U);
    EXPECT_THROW(read([](BlockFrame& b) { b.origin[1] = 1; }), Error);
    EXPECT_THROW(read([](BlockFrame& b) { b.schema[0] = 7; }), Error);
    EXPECT_THROW(read([](BlockFrame& b) { b.key_size[1] = 2; }), Error);
    EXPECT_THROW(read([](BlockFrame& b) { b.field_size[2] = UINT64_MAX; }), Error);
    EXPECT_THROW(read([](BlockFrame& b) { b.field_size.pop_back(); }), Error);
    EXPECT_THROW(read([](BlockFrame& b) { b.samples = 3; }), Error);
    EXPECT_THROW(read([](BlockFrame& b) { b.payload_sum ^= 1; }), Error);
    EXPECT_THROW(read([](BlockFrame& b) { b.schemas.back() = 'x'; }), Error);
    EXPECT_THROW(read([](BlockFrame& b) { b.origins.clear(); }), Error);
    EXPECT_THROW(read([](BlockFrame& b) { b.origins = {9, 0, 0, 0, 1}; }), Error);
    EXPECT_THROW(read([](BlockFrame& b) { b.packing = FeedCompression{3}; }), Error);
    pool->close();
    pool->drop();
}

class PackedPayload : public testing::TestWithParam<FeedCompression> {
  protected:
    PackedPayload() {
        PayloadPacker packer(GetParam());
        const auto bytes = packer.pack(payload);
        packed.assign(bytes.begin(), bytes.end());
    }
    ~PackedPayload() override {
        pool->close();
        pool->drop();
    }

    // The code of the error; SHF_OK: the fields are what they were.
    int32_t read(const Bytes& sent, uint64_t claim) {
        BlockFrame block = packed_block(GetParam(), claim);
        block.payload_sum = sum_of_payload(payload);
        try {
            const auto blocks = reader.read(decode_block(encode(block)), FeedPart(sent), 0);
            const FieldView field = blocks.at(0)->field_of(0, 0);
            EXPECT_EQ(Bytes(field.data, field.data + field.size),
                      Bytes(payload.begin(), payload.end() - 4));
        } catch (const Error& error) {
            return error.code();
        }
        return SHF_OK;
    }

    const Bytes payload = some_payload();
    Bytes packed;
    Pool* const pool = Pool::make(Options());
    const Cancel cancel;
    FeedBlockReader reader{*pool, cancel};
};

TEST_P(PackedPayload, is_what_it_was) {
    EXPECT_LT(packed.size(), payload.size() / 5);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(read(packed, payload.size()), SHF_OK);
}

TEST_P(PackedPayload, that_is_damaged_is_an_integrity_error) {
    Random random(Random::sample_shuffle, {2});
    for (int i = 0; i < 500; ++i) {
        Bytes changed = packed;
        changed[random.next() % changed.size()] ^= static_cast<uint8_t>(1 + random.next() % 255);
        const int32_t code = read(changed, payload.size());
        // A bit that means nothing, as the one that says how large blocks may be.
        EXPECT_TRUE(code == SHF_E_INTEGRITY || code == SHF_OK) << code;
    }
    for (size_t size = 0; size < packed.size(); size += 1 + packed.size() / 100)
        EXPECT_EQ(
            read(Bytes(packed.begin(), packed.begin() + static_cast<ptrdiff_t>(size)), 50'000),
            SHF_E_INTEGRITY)
            << size;
    Bytes longer = packed;
    longer.push_back(0);
    EXPECT_EQ(read(longer, payload.size()), SHF_E_INTEGRITY);
    EXPECT_EQ(read(packed, payload.size()), SHF_OK);  // the next message
}

TEST_P(PackedPayload, of_another_size_than_it_says_is_an_error) {
    for (const uint64_t claim :
         {uint64_t{5}, uint64_t{49'999}, uint64_t{50'001}, uint64_t{largest_packed_payload}})
        EXPECT_EQ(read(packed, claim), SHF_E_INTEGRITY) << claim;
    for (const uint64_t claim : {uint64_t{largest_packed_payload} + 1, UINT64_MAX})
        EXPECT_EQ(read(packed, claim), SHF_E_FORMAT) << claim;
    EXPECT_LT(pool->held(), 2 * largest_packed_payload);
}

TEST_P(PackedPayload, is_sent_as_it_is_where_nothing_is_won) {
    Random random(Random::sample_shuffle, {3});
    Bytes noise(10'000);
    for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random.next());
    PayloadPacker packer(GetParam());
    EXPECT_TRUE(packer.pack(noise).empty());
    EXPECT_TRUE(packer.pack(Bytes(largest_packed_payload + 1)).empty());
    EXPECT_FALSE(packer.pack(payload).empty());
}

INSTANTIATE_TEST_SUITE_P(FeedFrames, PackedPayload,
                         testing::Values(FeedCompression::lz4, FeedCompression::zstd));

}  // namespace
