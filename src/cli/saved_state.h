// States of streams as Python's state_dict() gives them: objects of JSON around the bytes of a
// shf_state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cli {

struct SavedState {
    int64_t epoch = 0;            // the number of the one that runs, or of the next one
    std::string blob;             // of the library; empty: at the start of that epoch
    std::optional<int64_t> left;  // samples or batches until the end of the epoch, where counted
    bool merged = false;          // from those of all consumers: `left` is of all
    std::string of;               // what `left` counts
    int64_t opened = 0;           // the epoch with which the stream was opened
};

// Throws Failure, which does not name the file: a text that is no such state.
SavedState parsed_state(const std::string& text);
std::string text_of(const SavedState& state);

// One state of those of all ranks and workers; at least one. Throws Failure.
SavedState merged(const std::vector<SavedState>& states);

}  // namespace cli
