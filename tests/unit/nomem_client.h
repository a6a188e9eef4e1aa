// A run of a stream in which allocations fail, with the calls that a program in C makes. For one
// file of a program, as failing_allocations.h is.
#pragma once

#include "failing_allocations.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

namespace shf::test {

// One run, with the calls that a user makes.
inline Scenario run(const std::string& url, const Settings& settings, bool blocks) {
    return [=](Outcome& outcome) {
        shf_error error = {};
        shf_stream* stream = nullptr;
        shf_options* options = shf_options_new();
        outcome.code = options ? SHF_OK : SHF_E_NOMEM;
        for (const auto& [name, value] : settings)
            if (outcome.code == SHF_OK)
                outcome.code = shf_options_set(options, name.c_str(), value.c_str(), &error);
        const char* const given = url.c_str();
        if (outcome.code == SHF_OK)
            outcome.code = shf_stream_open(&stream, &given, 1, options, &error);
        if (outcome.code != SHF_OK && stream) outcome.sound = false;
        const auto step = [&]() -> int32_t {
            shf_sample* sample = nullptr;
            shf_block* block = nullptr;
            const int32_t code = blocks ? shf_stream_next_block(stream, 0, &block, &error)
                                        : shf_stream_next(stream, &sample, &error);
            const size_t count = blocks ? shf_block_sample_count(block) : (sample ? 1 : 0);
            {
                const faults::Exempt own;
                for (size_t i = 0; i < count; ++i)
                    outcome.sound =
                        outcome.sound && is_whole(blocks ? shf_block_sample(block, i) : sample);
            }
            outcome.count += count;
            shf_sample_unref(sample);
            shf_block_unref(block);
            return code;
        };
        if (outcome.code == SHF_OK) {
            while ((outcome.code = step()) == SHF_OK) {
            }
            for (int i = 0; i < 2; ++i) outcome.sound = outcome.sound && step() == outcome.code;
        }
        std::copy(std::begin(error.message), std::end(error.message), outcome.message);
        shf_stream_close(stream);
        shf_options_free(options);
    };
}

// pthread_create says EAGAIN also where the memory for a thread is missing.
inline bool no_thread(const Outcome& outcome) {
    return outcome.code == SHF_E_LIMIT &&
           std::string_view(outcome.message).find("could not be started") != std::string_view::npos;
}

}  // namespace shf::test
