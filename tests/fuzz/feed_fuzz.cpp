// Fuzz target of the messages of a feed: any bytes as a message, at the server and at a stream.
// What is understood is written and read again as the same. A stream that gets the message delivers
// what is in it, or an error; a server that gets it opens the lane, and what it answers is right.
#include "feed_input.h"

#include "core/error.h"
#include "feed/fed_lane.h"
#include "feed/feed_options.h"
#include "order/state_encoding.h"

#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>

namespace {

using namespace shf::test;

const StateShards& feed_shards() {
    static const StateShards made;
    return made;
}

// The frame as it is written after it was read.
std::vector<uint8_t> again(std::span<const uint8_t> frame) {
    const shf::FrameType type = shf::type_of(frame);
    switch (type) {
        case shf::FrameType::hello: return encode(shf::decode_hello(frame));
        case shf::FrameType::welcome: return encode(shf::decode_welcome(frame));
        case shf::FrameType::refused: return shf::encode_refused(shf::decode_refused(frame));
        case shf::FrameType::open: return encode(shf::decode_open(frame));
        case shf::FrameType::credit: {
            const auto [opening, blocks] = shf::decode_credit(frame);
            return shf::encode_credit(opening, blocks);
        }
        case shf::FrameType::close: return shf::encode_close(shf::decode_close(frame));
        case shf::FrameType::block: return encode(shf::decode_block(frame));
        case shf::FrameType::epoch_end: return shf::encode_epoch_end(shf::decode_epoch_end(frame));
        case shf::FrameType::fault: {
            const auto [opening, fault] = shf::decode_fault_of_lane(frame);
            return shf::encode_fault_of_lane(opening, fault);
        }
        default: return shf::encode_plain(type);
    }
}

// ---- A stream
// ------------------------------------------------------------------------------------

// Servers that send one message about each lane, and then a fault.
class OneMessage final : public shf::LaneProvider {
  public:
    explicit OneMessage(const FeedInput& input) : input_(input) {}

    [[nodiscard]] std::optional<std::vector<uint32_t>> counts() const override {
        return std::vector<uint32_t>();
    }
    std::unique_ptr<shf::SampleLane> lane(shf::LaneContext& context,
                                          const shf::LaneState& from) override {
        return std::make_unique<shf::FedLane>(context, from, [] {});
    }
    void repeat() noexcept override {}
    void start(shf::LaneContext& context,
               std::span<const std::unique_ptr<shf::SampleLane>> lanes) override {
        started_ = true;
        shf::FeedBlockReader reader(*context.pool, context.cancel);
        for (const auto& lane : lanes) {
            shf::FedLane::Event first = event(reader, context), last;
            last.fault = shf::Error(SHF_E_NET_TRANSIENT, "the end", "none").fault();
            if (!first.fault && first.about.after.lane != lane->number())
                shf::throw_damaged_frame("is of another lane");
            const std::lock_guard lock(context.mutex);
            auto& fed = static_cast<shf::FedLane&>(*lane);
            fed.push(std::move(first));
            fed.push(std::move(last));
        }
    }
    [[nodiscard]] bool started() const override { return started_; }
    void join() noexcept override {}

  private:
    shf::FedLane::Event event(shf::FeedBlockReader& reader, shf::LaneContext& context) const {
        shf::FedLane::Event made;
        switch (shf::type_of(input_.frame)) {
            case shf::FrameType::fault:
                made.fault = shf::decode_fault_of_lane(input_.frame).second;
                break;
            case shf::FrameType::epoch_end:
                made.about = shf::decode_epoch_end(input_.frame);
                made.epoch_end = true;
                break;
            default: {
                shf::BlockFrame block = shf::decode_block(input_.frame);
                made.blocks = reader.read(block, shf::FeedPart(input_.payload), context.part);
                made.about = std::move(static_cast<shf::LaneFrame&>(block));
            }
        }
        return made;
    }

    const FeedInput& input_;
    bool started_ = false;
};

// Reads all that it says it has.
void touch(const shf::Block& block) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < block.count; ++i) {
        for (const char letter : block.key_of(i)) sum += static_cast<unsigned char>(letter);
        const uint64_t fields = block.first_field[i + 1] - block.first_field[i];
        for (uint64_t f = 0; f < fields; ++f) {
            const shf::FieldView field = block.field_of(i, f);
            sum = std::accumulate(field.data, field.data + field.size, sum + field.name.size());
        }
    }
    volatile uint64_t kept = sum;
    (void)kept;
}

void take_message(const FeedInput& input, bool rows) {
    shf::Options options = state_fuzz_options();
    options.set("lanes", "1");
    options.set("decode_threads", "1");
    options.set("max_skips", "100");
    if (rows) {
        options.set("batch", "3");
        options.set("decode", "cls:int, npy, txt:text, bin");
        options.set("ragged", "offsets");
    }
    shf::Stream stream(feed_shards().urls(), options, std::make_unique<OneMessage>(input));
    for (int i = 0; i < 20; ++i) {
        // What was taken can be saved, and that is a state.
        (void)shf::decode_state(shf::encode(stream.save(0)));
        if (rows) {
            if (!stream.next_batch()) return;
        } else if (input.payload.size() % 2 == 0) {
            const shf::BlockRef block = stream.next_block(4);
            if (!block) return;
            touch(*block);
        } else {
            shf::Sample* sample = stream.next();
            if (!sample) return;
            touch(*sample->block);
            sample->block->unref();
        }
    }
}

// ---- A server
// ------------------------------------------------------------------------------------

// As in state_fuzz: a lane that is far behind goes through all that is before it.
bool is_slow(const shf::OpenFrame& open) {
    return open.from.skip > 1000 || open.from.epoch > 20 || open.from.taken > 10'000;
}

void open_lane(const shf::OpenFrame& open) {
    if (is_slow(open) || open.credit == 0) return;
    shf::Options options = state_fuzz_options();
    options.set("lanes", "2");
    options.set("shuffle", "20");
    options.set("shuffle_shards", "true");
    options.set("seed", "3");
    options.set("max_skips", "100");
    options.epochs = open.epochs;
    FedMessages fed(feed_shards(), options, false, open);
    const std::optional<FeedInput> said = fed.next();
    if (!said) {
        // Past its last epoch.
        if (options.epochs == 0 || open.from.epoch < options.epochs) std::abort();
        return;
    }
    const FeedInput& answer = *said;
    if (shf::type_of(answer.frame) == shf::FrameType::fault) {
        const int32_t code = shf::decode_fault_of_lane(answer.frame).second.code;
        if (code == SHF_E_INTERNAL || code == SHF_E_NOMEM) std::abort();
        return;
    }
    if (shf::type_of(answer.frame) == shf::FrameType::epoch_end) {
        (void)shf::decode_epoch_end(answer.frame);
        return;
    }
    const shf::LaneContext context(feed_shards().urls(), options);
    shf::FeedBlockReader reader(*context.pool, context.cancel);
    for (const shf::BlockRef& block :
         reader.read(shf::decode_block(answer.frame), shf::FeedPart(answer.payload), 0))
        for (uint32_t i = 0; i < block->count; ++i)
            if (!feed_shards().has(*block, i)) std::abort();
}

void take(const FeedInput& input) {
    switch (shf::type_of(input.frame)) {
        case shf::FrameType::hello:
            (void)shf::options_of_consumer(state_fuzz_options(),
                                           shf::decode_hello(input.frame).options);
            return;
        case shf::FrameType::open: return open_lane(shf::decode_open(input.frame));
        case shf::FrameType::block: return take_message(input, shf::decode_block(input.frame).rows);
        case shf::FrameType::epoch_end:
        case shf::FrameType::fault: return take_message(input, input.payload.size() % 2 == 0);
        default: return;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const FeedInput input = FeedInput::of({data, size});
    try {
        const std::vector<uint8_t> once = again(input.frame);
        if (again(once) != once) std::abort();
    } catch (const shf::Error& error) {
        if (error.code() != SHF_E_FORMAT && error.code() != SHF_E_INTEGRITY &&
            error.code() != SHF_E_UNSUPPORTED)
            std::abort();
        return 0;
    }
    try {
        take(input);
    } catch (const shf::Error& error) {
        // TIMEOUT: it hangs. Faults of a server are passed on as they are.
        if (shf::type_of(input.frame) != shf::FrameType::fault &&
            (error.code() == SHF_E_INTERNAL || error.code() == SHF_E_NOMEM ||
             error.code() == SHF_E_TIMEOUT))
            std::abort();
    }
    return 0;
}

#ifdef SHF_LIBFUZZER
#include "other_number.h"

#include <random>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using Random = std::minstd_rand;
using shf::test::other_number;

template <typename Number>
void change_table(std::vector<Number>& table, Random& random) {
    if (table.empty() || random() % 8 == 0) {
        table.resize(random() % 2 == 0 ? table.size() + 1 : table.size() / 2);
        return;
    }
    auto& number = table[random() % table.size()];
    number = static_cast<Number>(other_number(number, random));
}

template <typename Bytes>
void change_bytes(Bytes& bytes) {
    std::vector<uint8_t> room(bytes.begin(), bytes.end());
    const size_t size = room.size();
    room.resize(size + 64);
    room.resize(LLVMFuzzerMutate(room.data(), size, room.size()));
    bytes = Bytes(room.begin(), room.end());
}

void change_state(shf::LaneState& lane, Random& random) {
    uint64_t* const numbers[] = {&lane.epoch, &lane.taken, &lane.drawn,
                                 &lane.put,   &lane.begun, &lane.skip};
    switch (random() % 6) {
        case 0: lane.closed = !lane.closed; break;
        case 1: lane.lane = static_cast<uint32_t>(other_number(lane.lane, random)); break;
        case 2:
            if (!lane.shards.empty()) {
                shf::ShardState& shard = lane.shards[random() % lane.shards.size()];
                uint64_t* const places[] = {&shard.nth, &shard.position.next, &shard.ordinal,
                                            &shard.position.from.offset};
                uint64_t& place = *places[random() % std::size(places)];
                place = other_number(place, random);
            }
            break;
        default: {
            uint64_t& number = *numbers[random() % std::size(numbers)];
            number = other_number(number, random);
        }
    }
}

void change_about(shf::LaneFrame& about, Random& random) {
    switch (random() % 6) {
        case 0: about.epoch = other_number(about.epoch, random); break;
        case 1: about.opened = !about.opened; break;
        case 2: about.unopened = shf::Error(SHF_E_IO, "gone", "none").fault(); break;
        case 3:
            about.skipped.push_back({shf::Error(SHF_E_FORMAT, "bad", "none").fault(),
                                     random() % 2 == 0, static_cast<uint32_t>(random() % 9)});
            break;
        case 4: about.counts[random() % about.counts.size()] += random() % 9; break;
        default: change_state(about.after, random);
    }
}

void change_block(shf::BlockFrame& block, std::vector<uint8_t>& payload, Random& random) {
    switch (random() % 12) {
        case 0: change_table(block.origin, random); break;
        case 1: change_table(block.schema, random); break;
        case 2: change_table(block.key_size, random); break;
        case 3: change_table(block.offset, random); break;
        case 4: change_table(block.field_size, random); break;
        case 5: change_bytes(block.origins); break;
        case 6: change_bytes(block.schemas); break;
        case 7: change_bytes(block.keys); break;
        case 8: block.rows = !block.rows; break;
        case 9: change_about(block, random); break;
        default: change_bytes(payload);
    }
    if (random() % 16 != 0) block.payload_sum = shf::sum_of_payload(payload);
    if (random() % 2 == 0) block.samples = static_cast<uint32_t>(block.origin.size());
}

void change(FeedInput& input, Random& random) {
    switch (shf::type_of(input.frame)) {
        case shf::FrameType::hello: {
            shf::HelloFrame hello = shf::decode_hello(input.frame);
            change_bytes(random() % 4 == 0 ? hello.token : hello.options);
            input.frame = encode(hello);
            break;
        }
        case shf::FrameType::welcome: {
            shf::WelcomeFrame welcome = shf::decode_welcome(input.frame);
            if (random() % 2 == 0) change_bytes(welcome.decode);
            change_table(welcome.counts, random);
            input.frame = encode(welcome);
            break;
        }
        case shf::FrameType::open: {
            shf::OpenFrame open = shf::decode_open(input.frame);
            uint64_t* const numbers[] = {&open.opening, &open.block_bytes, &open.credit,
                                         &open.epochs};
            uint64_t& number = *numbers[random() % std::size(numbers)];
            if (random() % 3 == 0)
                number = other_number(number, random);
            else
                change_state(open.from, random);
            input.frame = encode(open);
            break;
        }
        case shf::FrameType::block: {
            shf::BlockFrame block = shf::decode_block(input.frame);
            change_block(block, input.payload, random);
            input.frame = encode(block);
            break;
        }
        case shf::FrameType::epoch_end: {
            shf::LaneFrame end = shf::decode_epoch_end(input.frame);
            change_about(end, random);
            input.frame = shf::encode_epoch_end(end);
            break;
        }
        default: change_bytes(input.frame);
    }
}

}  // namespace

// Most mutations would end at a wrong checksum; most of those are of what a message says.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
    Random random(seed);
    if (random() % 16 == 0) return LLVMFuzzerMutate(data, size, max_size);
    try {
        FeedInput input = FeedInput::of({data, size});
        for (uint64_t changes = 1 + random() % 3; changes > 0; --changes) change(input, random);
        const std::vector<uint8_t> bytes = input.bytes();
        if (bytes.size() > max_size) return size;
        std::copy(bytes.begin(), bytes.end(), data);
        return bytes.size();
    } catch (const shf::Error&) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
}
#endif
