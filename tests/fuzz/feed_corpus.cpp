// Writes the first inputs of feed_fuzz into a folder: feed_corpus tests/fuzz/corpus/feed. Each file
// is named after what it tests; findings of the fuzzer are added beside them.
#include "corpus_files.h"
#include "feed_input.h"

#include "core/error.h"
#include "core/sealed_map.h"

#include <functional>
#include <iostream>

namespace {

using namespace shf::test;
using Frame = std::vector<uint8_t>;

shf::OpenFrame from_start() {
    return {.opening = 1, .block_bytes = 64 << 10, .credit = 8, .epochs = 1, .from = {}};
}

// What a server sends of lane 0: so many messages.
std::vector<FeedInput> sent(const StateShards& shards, size_t count, bool rows, const char* decode,
                            const char* compression = "none") {
    shf::Options options = state_fuzz_options();
    options.set("lanes", "1");
    options.set("slice", "0:12");
    options.set("decode", decode);
    options.set("feed_compression", compression);
    options.set("batch", rows ? "1" : "0");
    FedMessages fed(shards, options, rows, from_start());
    std::vector<FeedInput> messages;
    for (size_t i = 0; i < count; ++i) messages.push_back(fed.next().value());
    return messages;
}

Frame of_another_version() {
    shf::SealedWriter writer;
    writer.put("type", uint64_t{1});
    const auto bytes = writer.finish(
        {.magic = "shardfeed-feed", .version = 2, .what = "the message of a feed", .help = "none"});
    return {bytes.begin(), bytes.end()};
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: feed_corpus FOLDER\n";
        return 2;
    }
    const StateShards shards;
    const std::filesystem::path folder = argv[1];
    bool good = true;
    const auto put = [&](const std::string& name, const FeedInput& input) {
        const std::vector<uint8_t> bytes = input.bytes();
        good = write_input(folder, name,
                           {reinterpret_cast<const char*>(bytes.data()), bytes.size()}) &&
               good;
    };
    const auto frame = [&](const std::string& name, Frame bytes) {
        put(name, {std::move(bytes), {}});
    };
    const shf::Fault fault = shf::Error(SHF_E_FORMAT, "it is bad", "copy it again", 512).fault();

    frame("hello", encode(shf::HelloFrame{"secret", "lanes=4\nshuffle=20\nseed=3\n"}));
    frame("hello_with_an_option_of_servers", encode(shf::HelloFrame{"", "memory=1GiB\n"}));
    frame("hello_with_a_bad_option", encode(shf::HelloFrame{"", "lanes=many\nx"}));
    frame("welcome", encode(shf::WelcomeFrame{{"a.tar", "b.tar"}, false, "auto", {}}));
    frame("welcome_rows", encode(shf::WelcomeFrame{{"a.tar", "b.tar"}, true, "cls:int", {4, 9}}));
    frame("refused", shf::encode_refused(fault));
    frame("credit", shf::encode_credit(7, 2));
    frame("close", shf::encode_close(7));
    frame("fault", shf::encode_fault_of_lane(1, fault));
    for (const auto& [name, type] : {std::pair{"ping", shf::FrameType::ping},
                                     {"pong", shf::FrameType::pong},
                                     {"bye", shf::FrameType::bye},
                                     {"drain", shf::FrameType::drain}})
        frame(name, shf::encode_plain(type));

    const auto open = [&](const char* name, const std::function<void(shf::OpenFrame&)>& change) {
        shf::OpenFrame opened = from_start();
        change(opened);
        frame(name, encode(opened));
    };
    open("open", [](auto&) {});
    open("open_without_end", [](auto& o) { o.epochs = 0; });
    open("open_another_lane", [](auto& o) { o.from.lane = 7; });
    open("open_past_the_end", [](auto& o) { o.from.epoch = 9; });
    open("open_after_some", [](auto& o) {
        o.from.taken = o.from.put = o.from.drawn = 5;
        o.from.begun = 1;
        o.from.shards.push_back(
            {.nth = 0, .position = {.from = {}, .next = 5}, .bad = {}, .near = {}});
    });

    put("block", sent(shards, 1, false, "auto")[0]);
    const std::vector<FeedInput> more = sent(shards, 2, false, "auto");
    put("block_in_two_shards", more[1]);
    for (const char* compression : {"lz4", "zstd"}) {
        FeedInput packed = sent(shards, 1, false, "auto", compression)[0];
        put(std::string("block_") + compression, packed);
        shf::BlockFrame block = shf::decode_block(packed.frame);
        block.unpacked_size += 1;
        packed.frame = encode(block);
        put(std::string("block_of_another_size_") + compression, packed);
    }
    put("rows", sent(shards, 1, true, "cls:text, txt:bytes")[0]);
    put("rows_with_faults", sent(shards, 1, true, "cls:int")[0]);
    FeedInput damaged = more[0];
    damaged.payload.back() ^= 1;
    put("payload_damaged", damaged);
    damaged = more[0];
    damaged.payload.resize(damaged.payload.size() / 2);
    put("payload_cut", damaged);
    damaged = more[0];
    damaged.frame.resize(damaged.frame.size() - 9);
    put("cut", damaged);
    damaged = more[0];
    damaged.frame[damaged.frame.size() / 2] ^= 1;
    put("wrong_checksum", damaged);

    // The position is one that the lane has been at.
    shf::LaneFrame end = shf::decode_block(more[1].frame);
    frame("epoch_end", shf::encode_epoch_end(end));
    end.skipped = {{fault, false, 0}, {fault, true, 3}};
    end.unopened = fault;
    end.after = shf::LaneState::at_start(0, 1);
    frame("epoch_end_with_skips", shf::encode_epoch_end(end));
    frame("another_version", of_another_version());
    frame("nothing", {});
    return good ? 0 : 1;
}
