#include "cli/saved_state.h"

#include "cli/base64.h"
#include "cli/json_report.h"
#include "cli/library.h"
#include "cli/terminal.h"

#include <limits>

namespace cli {

namespace {

constexpr int64_t format_version = 1;
constexpr const char* hint = "; help: give what state_dict() gave";

[[noreturn]] void damaged(const std::string& cause) {
    throw Failure(failed, "the saved state is damaged (" + cause + ")" + hint);
}

const Json& member(const Json& state, const char* name) {
    const auto found = state.find(name);
    if (found == state.end()) damaged("it has no \"" + std::string(name) + "\"");
    return *found;
}

int64_t number(const Json& state, const char* name) {
    const Json& value = member(state, name);
    const bool fits = value.is_number_integer() &&
                      (!value.is_number_unsigned() ||
                       value.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()});
    if (!fits) damaged("\"" + std::string(name) + "\" is no number");
    return value.get<int64_t>();
}

std::string string(const Json& state, const char* name) {
    const Json& value = member(state, name);
    if (!value.is_string()) damaged("\"" + std::string(name) + "\" is no text");
    return value.get<std::string>();
}

void expect_same(const char* what, const std::string& mine, const std::string& other) {
    if (mine == other) return;
    throw Failure(wrong_command_line, std::string("the states differ in ") + what + ": " +
                                          printable(mine) + " and " + printable(other) +
                                          "; help: merge states that were saved at the same time");
}

void expect_same_moment(const SavedState& first, const SavedState& other) {
    const auto counting = [](const SavedState& state) {
        return state.left ? "counted" : "not counted";
    };
    const auto place = [](const SavedState& state) {
        return state.blob.empty() ? "at the start of an epoch" : "inside an epoch";
    };
    expect_same("epoch", std::to_string(first.epoch), std::to_string(other.epoch));
    expect_same("the epoch they began with", std::to_string(first.opened),
                std::to_string(other.opened));
    expect_same("what is taken", first.of, other.of);
    expect_same("counting", counting(first), counting(other));
    expect_same("place", place(first), place(other));
}

std::string merged_blob(const std::vector<SavedState>& states) {
    std::vector<shf_bytes> blobs;
    for (const SavedState& state : states)
        blobs.push_back({reinterpret_cast<const uint8_t*>(state.blob.data()), state.blob.size()});
    shf_state* made = nullptr;
    call(shf_state_merge, blobs.data(), blobs.size(), &made);
    const State state(made);
    shf_bytes bytes;
    shf_state_bytes(made, &bytes);
    return std::string(text(bytes));
}

}  // namespace

SavedState parsed_state(const std::string& text) {
    Json state;
    try {
        state = Json::parse(text);
    } catch (const Json::parse_error& error) {
        throw Failure(failed, "this is no JSON (wrong at byte " + std::to_string(error.byte) +
                                  "); help: write it with json.dump(state, file)");
    }
    if (!state.is_object() || !state.contains("shardfeed"))
        throw Failure(failed, std::string("this is no saved state") + hint);
    if (state["shardfeed"] != format_version)
        throw Failure(wrong_command_line,
                      "the state has version " + printable(state["shardfeed"].dump()) +
                          " of this format; help: restore it with the version of shardfeed that "
                          "saved it");
    SavedState made;
    made.epoch = number(state, "epoch");
    const int64_t left = number(state, "left");
    if (left >= 0) made.left = left;
    const Json& is_merged = member(state, "merged");
    if (!is_merged.is_boolean()) damaged("\"merged\" is neither true nor false");
    made.merged = is_merged.get<bool>();
    made.of = string(state, "of");
    made.opened = state.contains("opened") ? number(state, "opened") : made.epoch;
    std::optional<std::string> blob = from_base64(string(state, "state"));
    if (!blob) damaged("\"state\" is no Base64");
    made.blob = std::move(*blob);
    return made;
}

std::string text_of(const SavedState& state) {
    Json made;
    made["shardfeed"] = format_version;
    made["epoch"] = state.epoch;
    made["state"] = base64(state.blob);
    made["left"] = state.left.value_or(-1);
    made["merged"] = state.merged;
    made["of"] = state.of;
    made["opened"] = state.opened;
    return line_of(made);
}

SavedState merged(const std::vector<SavedState>& states) {
    SavedState made = states.front();
    made.merged = true;
    if (made.left) made.left = 0;
    for (const SavedState& state : states) {
        expect_same_moment(states.front(), state);
        if (made.left && __builtin_add_overflow(*made.left, state.left.value_or(0), &*made.left))
            damaged("\"left\" is too large");
    }
    if (!made.blob.empty()) made.blob = merged_blob(states);
    return made;
}

}  // namespace cli
