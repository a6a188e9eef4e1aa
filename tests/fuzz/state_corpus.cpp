// Writes the first inputs of state_fuzz into a folder: state_corpus tests/fuzz/corpus/state. Each
// file is named after what it tests; findings of the fuzzer are added beside them. With --check it
// only looks whether those that are there are still states of this version, with all options: else
// the replay would go no further than that.
#include "corpus_files.h"
#include "order/state_encoding.h"
#include "state_shards.h"

#include "core/error.h"

#include <functional>
#include <iostream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace {

using namespace shf::test;
using Settings = std::vector<std::pair<const char*, const char*>>;
using Blob = std::vector<uint8_t>;

// A stream that was stopped after so many samples, or in the middle of a block.
shf::StreamState stopped(const StateShards& shards, const Settings& settings, size_t samples,
                         bool in_block = false) {
    shf::Options options = state_fuzz_options();
    for (const auto& [name, value] : settings) options.set(name, value);
    const auto stream = shards.open(options);
    if (in_block) {
        (void)stream->next_block(11);
        const shf::BlockRef block = stream->next_block(samples);
        return stream->save(block->count / 2);
    }
    for (size_t i = 0; i < samples; ++i) {
        shf::Sample* sample = stream->next();
        if (!sample) break;
        sample->block->unref();
    }
    return stream->save(0);
}

// The options of a state; nothing when it is none.
std::vector<std::pair<std::string, std::string>> options_in(std::span<const uint8_t> blob) {
    try {
        return shf::decode_state(blob).options;
    } catch (const shf::Error&) {
        return {};
    }
}

// The shard in which some lane resumes.
shf::ShardState& unfinished(shf::StreamState& state) {
    for (shf::LaneState& lane : state.position.lanes)
        if (!lane.shards.empty() && !lane.shards.back().is_over()) return lane.shards.back();
    throw std::logic_error("every shard was read to its end");
}

}  // namespace

int main(int argc, char** argv) {
    const bool check = argc == 3 && argv[1] == std::string_view("--check");
    if (argc != 2 && !check) {
        std::cerr << "usage: state_corpus [--check] FOLDER\n";
        return 2;
    }
    const StateShards shards;
    const auto at = [&](const Settings& settings, size_t samples) {
        return shf::encode(stopped(shards, settings, samples));
    };
    const Settings mixed = {
        {"shuffle", "20"}, {"lanes", "4"}, {"shuffle_shards", "true"}, {"seed", "3"}};
    const auto with = [&](const std::function<void(shf::StreamState&)>& change) {
        shf::StreamState state = stopped(shards, mixed, 60);
        change(state);
        return shf::encode(state);
    };
    const auto merged = [&] {
        std::vector<shf::StreamState> states;
        for (const char* rank : {"0", "1"}) {
            Settings settings = mixed;
            settings.insert(settings.end(), {{"world_size", "2"}, {"rank", rank}});
            states.push_back(stopped(shards, settings, 25));
        }
        return shf::encode(shf::merge(states));
    };
    const auto by_index = [&](Settings more, size_t samples) {
        more.insert(more.end(), {{"by_index", "true"}, {"shuffle", "20"}, {"lanes", "2"}});
        return stopped(shards, more, samples);
    };
    const auto merged_by_index = [&] {
        std::vector<shf::StreamState> states;
        for (const char* rank : {"0", "1"})
            states.push_back(by_index({{"world_size", "2"}, {"rank", rank}}, 7));
        return shf::encode(shf::merge(states));
    };
    const auto mix = [&](unsigned depth) {
        shf::StreamState state = stopped(shards, mixed, 60);
        for (; depth > 0; --depth) {
            shf::StreamState outer;
            outer.options = {{"seed", "0"}, {"until", "all"}, {"weights", "1:1"}};
            outer.position.mixed = 60;
            outer.parts = {state, state};
            state = std::move(outer);
        }
        return shf::encode(state);
    };
    Blob wrong_checksum = at(mixed, 60), cut = wrong_checksum;
    wrong_checksum.back() ^= 1;
    cut.resize(cut.size() - 20);
    struct Input {
        const char* name;
        Blob blob;
    };
    const Input inputs[] = {
        {"start", at({}, 0)},
        {"plain", at({}, 25)},
        {"plain_at_the_end", at({}, 5000)},
        {"plain_second_epoch", at({{"shuffle_shards", "true"}}, 400)},
        {"lanes", at({{"lanes", "4"}}, 40)},
        {"lanes_some_over", at({{"lanes", "4"}}, 200)},
        {"in_a_block", shf::encode(stopped(shards, {{"lanes", "2"}}, 9, true))},
        {"shuffle", at(mixed, 60)},
        {"shuffle_filling", at({{"shuffle", "500"}}, 1)},
        {"shuffle_emptying", at({{"shuffle", "50"}}, 320)},
        {"shuffle_second_epoch", at(mixed, 500)},
        {"shuffle_in_a_block", shf::encode(stopped(shards, mixed, 9, true))},
        {"resample", at({{"resample", "true"}, {"shuffle", "20"}, {"lanes", "2"}}, 70)},
        {"epoch_samples", at({{"epoch_samples", "30"}, {"shuffle", "10"}}, 50)},
        {"slice", at({{"slice", "1::2"}, {"shuffle", "10"}, {"lanes", "2"}}, 50)},
        {"one_of_two", at({{"world_size", "2"}, {"rank", "1"}, {"lanes", "4"}}, 20)},
        {"merged", merged()},
        {"by_index", shf::encode(by_index({}, 30))},
        {"by_index_second_epoch", shf::encode(by_index({}, 60))},
        {"by_index_worker", shf::encode(by_index({{"worker", "1"}, {"num_workers", "3"}}, 5))},
        {"by_index_merged", merged_by_index()},
        {"mix", mix(1)},
        {"mix_of_mixes", mix(2)},
        {"another_version", with([](auto& s) { unfinished(s).position.version ^= 2; })},
        {"byte_of_no_sample", with([](auto& s) { unfinished(s).position.from.offset += 512; })},
        {"byte_past_the_end",
         with([](auto& s) { unfinished(s).position.from.offset = uint64_t{1} << 40; })},
        {"epoch_past_the_end", with([](auto& s) { s.position.lanes[1].epoch = 7; })},
        {"samples_are_gone", with([](auto& s) {
             for (auto& [name, value] : s.options) {
                 if (name == "select_keys") value = "nothing";
                 if (name == "epoch_samples") value = "9";
             }
             s.position.lanes[1] = {
                 .lane = 1, .skip = 5, .waiting_and_given = {}, .begun_later = {}, .shards = {}};
         })},
        {"some_given", with([](auto& s) {
             s.position.lanes[1].waiting_and_given = {2, 300, 1, 4};
         })},
        {"some_begun", with([](auto& s) {
             s.position.lanes[1].begun_later = {{2, 9}, {7, 4096}};
         })},
        {"put_2_60", with([](auto& s) { s.position.lanes[2].put = uint64_t{1} << 60; })},
        {"drawn_2_62", with([](auto& s) { s.position.lanes[2].drawn = uint64_t{1} << 62; })},
        {"no_shards", with([](auto& s) { s.position.lanes[0].shards.clear(); })},
        {"no_lanes", with([](auto& s) { s.position.lanes.clear(); })},
        {"wrong_checksum", wrong_checksum},
        {"cut", cut},
        {"nothing", {}},
    };
    const std::filesystem::path folder(argv[argc - 1]);
    for (const Input& input : inputs) {
        if (check) {
            const std::filesystem::path path = folder / input.name;
            std::ifstream file(path, std::ios::binary);
            const Blob blob{std::istreambuf_iterator<char>(file), {}};
            if (file && options_in(blob) == options_in(input.blob)) continue;
            std::cerr << path << " is of another version: write the corpus again\n";
            return 1;
        }
        const std::string bytes(input.blob.begin(), input.blob.end());
        if (!write_input(folder, input.name, bytes)) return 1;
    }
    return 0;
}
