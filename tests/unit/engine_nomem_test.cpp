// Every allocation of a run fails, by itself and with all after it: the run then ends with NOMEM
// or, where the library can do without, as if nothing had been; it neither crashes nor hangs nor
// leaks, and never delivers fewer samples as if they were all. Batches: batch_nomem_test.cpp, other
// formats than plain tar: format_nomem_test.cpp, writers: writer_nomem_test.cpp.
#include "nomem_client.h"

#include <array>

namespace {

using namespace shf::test;

// The stride is 1 in the slow suite.
class EngineNomem : public testing::TestWithParam<int64_t> {
  protected:
    EngineNomem() { write_shards(directory, {30, 30, 30, 30}, 3000); }
    [[nodiscard]] std::string url() const { return directory / "{000..003}.tar"; }
    void fail_each(const Scenario& scenario) {
        const Counts counts = fail_each_allocation(scenario, Faults::heap, GetParam(), no_thread);
        EXPECT_GT(counts.nomem, GetParam() == 1 ? 30U : 3U);
        RecordProperty("points", std::to_string(counts.points));
    }

    const TempDirectory directory;
};

TEST_P(EngineNomem, samples) {
    fail_each(run(url(), {{"threads", "1"}}, false));
}
TEST_P(EngineNomem, blocks) {
    fail_each(run(url(), {{"threads", "2"}}, true));
}
TEST_P(EngineNomem, lanes_and_shuffle) {
    fail_each(run(url(),
                  {{"threads", "2"}, {"lanes", "2"}, {"shuffle", "10"}, {"shuffle_shards", "true"}},
                  true));
}
// Damage does not become NOMEM, and NOMEM is not skipped as damage.
TEST_P(EngineNomem, skipped_shards) {
    directory.write("001.tar", shard_bytes(1, 30, 3000).substr(0, 50000));
    fail_each(run(url(), {{"threads", "1"}, {"on_error", "skip_sample"}}, false));
}

// Ranks that share lanes: samples of others are passed over.
TEST_P(EngineNomem, shared_lanes) {
    const Settings share = {{"threads", "1"}, {"world_size", "3"}, {"rank", "1"}, {"lanes", "4"}};
    fail_each(run(url(), share, false));
}

// Samples at their places, in an order that is computed.
TEST_P(EngineNomem, by_index) {
    for (const char* name : {"000.tar", "001.tar", "002.tar", "003.tar"})
        ASSERT_EQ(shf_index_build((directory / name).c_str(), nullptr, nullptr), SHF_OK);
    fail_each(run(url(),
                  {{"threads", "2"},
                   {"by_index", "true"},
                   {"lanes", "2"},
                   {"shuffle", "10"},
                   {"world_size", "2"},
                   {"rank", "1"}},
                  true));
}

// Samples or batches of a mix, which is saved once.
Scenario mixing(const std::string& first, const std::string& second, bool batches) {
    return [=](Outcome& outcome) {
        shf_error error = {};
        shf_options* const options = shf_options_new();
        shf_options* const own = shf_options_new();
        std::array<shf_stream*, 2> parts{};
        shf_stream* mix = nullptr;
        shf_state* state = nullptr;
        int32_t code = options && own ? int32_t{SHF_OK} : int32_t{SHF_E_NOMEM};
        if (code == SHF_OK) code = shf_options_set(own, "threads", "1", &error);
        if (code == SHF_OK && batches)
            code =
                shf_options_set_all(options, "batch=7,decode='txt:bytes',decode_threads=1", &error);
        for (size_t i = 0; i < parts.size() && code == SHF_OK; ++i) {
            const char* const given = (i == 0 ? first : second).c_str();
            code = shf_stream_open(&parts[i], &given, 1, own, &error);
        }
        const double weights[] = {3, 1};
        if (code == SHF_OK) {
            code = shf_stream_mix(&mix, parts.data(), weights, parts.size(), options, &error);
            if (code == SHF_OK) parts.fill(nullptr);
        }
        while (code == SHF_OK) {
            shf_sample* sample = nullptr;
            shf_batch* batch = nullptr;
            code = batches ? shf_stream_next_batch(mix, &batch, &error)
                           : shf_stream_next(mix, &sample, &error);
            if (sample) {
                const faults::Exempt test;
                outcome.sound = outcome.sound && is_whole(sample);
            }
            outcome.count += batch ? shf_batch_row_count(batch) : (sample ? 1 : 0);
            shf_sample_unref(sample);
            shf_batch_unref(batch);
            if (code == SHF_OK && outcome.count > 20 && !state)
                code = shf_stream_save(mix, 0, &state, &error);
        }
        outcome.code = code;
        std::copy(std::begin(error.message), std::end(error.message), outcome.message);
        shf_state_free(state);
        shf_stream_close(mix);
        for (shf_stream* part : parts) shf_stream_close(part);
        shf_options_free(options);
        shf_options_free(own);
    };
}
TEST_P(EngineNomem, mixes) {
    for (const bool batches : {false, true})
        fail_each(mixing(directory / "{000..001}.tar", directory / "{002..003}.tar", batches));
}

TEST_P(EngineNomem, plans) {
    for (const char* name : {"000.tar", "001.tar", "002.tar", "003.tar"})
        ASSERT_EQ(shf_index_build((directory / name).c_str(), nullptr, nullptr), SHF_OK);
    const std::string list = url();
    fail_each([&](Outcome& outcome) {
        shf_error error = {};
        shf_plan* plan = nullptr;
        const char* const given = list.c_str();
        shf_options* const options = shf_options_new();
        outcome.code = options
                           ? shf_options_set_all(options, "world_size=2,lanes=4,even=drop", &error)
                           : int32_t{SHF_E_NOMEM};
        if (outcome.code == SHF_OK) outcome.code = shf_plan_make(&plan, &given, 1, options, &error);
        std::copy(std::begin(error.message), std::end(error.message), outcome.message);
        shf_plan_free(plan);
        shf_options_free(options);
    });
}

// What is done with states: msgpack has its own memory.
TEST_P(EngineNomem, states) {
    const std::string list = url();
    fail_each([&](Outcome& outcome) {
        const char* const given = list.c_str();
        shf_error error = {};
        shf_stream *stream = nullptr, *other = nullptr;
        shf_state *state = nullptr, *merged = nullptr;
        shf_sample* sample = nullptr;
        shf_bytes bytes{};
        int32_t code = shf_stream_open(&stream, &given, 1, nullptr, &error);
        for (int i = 0; i < 7 && code == SHF_OK; ++i) {
            code = shf_stream_next(stream, &sample, &error);
            shf_sample_unref(sample);
            sample = nullptr;
        }
        if (code == SHF_OK) code = shf_stream_save(stream, 0, &state, &error);
        if (code == SHF_OK) {
            shf_state_bytes(state, &bytes);
            code = shf_state_merge(&bytes, 1, &merged, &error);
        }
        if (code == SHF_OK) code = shf_stream_open(&other, &given, 1, nullptr, &error);
        if (code == SHF_OK) {
            shf_state_bytes(merged, &bytes);
            code = shf_stream_restore(other, bytes.data, bytes.size, &error);
        }
        if (code == SHF_OK) code = shf_stream_next(other, &sample, &error);
        if (sample) {
            const faults::Exempt own;
            outcome.sound = is_whole(sample) && key_of(sample) == sample_key(0, 7);
        }
        shf_sample_unref(sample);
        outcome.code = code;
        std::copy(std::begin(error.message), std::end(error.message), outcome.message);
        shf_stream_close(stream);
        shf_stream_close(other);
        shf_state_free(state);
        shf_state_free(merged);
    });
}

// Indexes are msgpack too: one that cannot be read for lack of memory is not called damaged.
TEST_P(EngineNomem, indexes_and_data_sets) {
    const std::string list = url(), one = directory / "000.tar";
    fail_each([&](Outcome& outcome) {
        const char* const given = list.c_str();
        shf_error error = {};
        shf_options* options = shf_options_new();
        shf_dataset* dataset = nullptr;
        shf_sample* sample = nullptr;
        uint64_t number = 0;
        int32_t code =
            options ? shf_options_set(options, "index", "require", &error) : int32_t{SHF_E_NOMEM};
        if (code == SHF_OK)
            for (int shard = 0; shard < 4 && code == SHF_OK; ++shard) {
                std::array<char, 4096> path{};
                std::copy(one.begin(), one.end(), path.begin());
                path[one.size() - 5] = static_cast<char>('0' + shard);
                code = shf_index_build(path.data(), nullptr, &error);
            }
        if (code == SHF_OK) code = shf_dataset_open(&dataset, &given, 1, options, &error);
        if (code == SHF_OK) code = shf_dataset_find(dataset, "s002-00003", 10, &number, &error);
        if (code == SHF_OK) code = shf_dataset_get(dataset, number, &sample, &error);
        if (sample) {
            const faults::Exempt own;
            outcome.sound = is_whole(sample) && key_of(sample) == sample_key(2, 3);
        }
        shf_sample_unref(sample);
        const std::array<uint64_t, 5> numbers = {3, 77, 4, 3, 119};
        std::array<shf_sample*, 5> many{};
        if (code == SHF_OK) {
            code = shf_dataset_get_many(dataset, numbers.data(), 5, many.data(), &error);
            for (shf_sample* each : many) {
                outcome.sound = outcome.sound && (code == SHF_OK) == (each != nullptr);
                shf_sample_unref(each);
            }
        }
        outcome.code = code;
        std::copy(std::begin(error.message), std::end(error.message), outcome.message);
        shf_dataset_close(dataset);
        shf_options_free(options);
    });
}

TEST_P(EngineNomem, archives) {
    const std::string path = directory / "000.tar";
    fail_each([&](Outcome& outcome) {
        shf_error error = {};
        shf_archive* archive = nullptr;
        uint64_t position = 0;
        std::array<char, 3000> bytes{};
        int32_t code = shf_archive_open(&archive, path.c_str(), nullptr, &error);
        if (code == SHF_OK)
            code = shf_archive_find(archive, "s000-00003.txt", 14, &position, &error);
        if (code == SHF_OK)
            code = shf_archive_read(archive, position, bytes.data(), bytes.size(), &error);
        outcome.code = code;
        std::copy(std::begin(error.message), std::end(error.message), outcome.message);
        shf_archive_close(archive);
    });
}

TEST_P(EngineNomem, options_and_urls) {
    const std::string list = url();
    fail_each([&](Outcome& outcome) {
        const auto each = [](void*, const char*, size_t) -> int32_t { return 0; };
        const char* const given = list.c_str();
        shf_error error = {};
        shf_options* options = shf_options_new();
        int32_t code =
            options ? shf_options_set(options, "shufle", "1", &error) : int32_t{SHF_E_NOMEM};
        if (code == SHF_E_USAGE) code = shf_expand_urls(&given, 1, options, each, nullptr, &error);
        outcome.code = code;
        shf_options_free(options);
    });
}

INSTANTIATE_TEST_SUITE_P(sample, EngineNomem, testing::Values(17));
INSTANTIATE_TEST_SUITE_P(every, EngineNomem, testing::Values(1));

// A pipe has a process, and few allocations that matter beside those of the others.
TEST(EngineNomemPipe, of_a_command) {
    const TempDirectory directory;
    write_shards(directory, {30}, 3000);
    const Counts counts =
        fail_each_allocation(run("pipe:cat " + (directory / "000.tar"), {{"threads", "1"}}, false),
                             Faults::heap, 3, no_thread);
    EXPECT_GT(counts.nomem, 3U);
}

}  // namespace
