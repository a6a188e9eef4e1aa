// Words and what they mean.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace shf {

template <typename Value, size_t n>
using Words = const std::pair<std::string_view, Value> (&)[n];

template <typename Value, size_t n>
std::optional<Value> find_word(Words<Value, n> words, std::string_view word) {
    for (const auto& [name, value] : words)
        if (name == word) return value;
    return std::nullopt;
}

template <typename Value, size_t n>
std::string list_words(Words<Value, n> words) {
    std::string out;
    for (const auto& [name, value] : words) out += (out.empty() ? "" : ", ") + std::string(name);
    return out;
}

// A word with a value, as "rate=8".
struct ValuedWord {
    std::string_view name, value;  // the value is empty where there is none
    size_t value_at;               // in the text that the word is of
};

// The parts of a word that begins at `at`.
inline ValuedWord split_word(size_t at, std::string_view word) {
    const size_t name = std::min(word.find('='), word.size());
    const size_t value = std::min(name + 1, word.size());
    return {word.substr(0, name), word.substr(value), at + value};
}

}  // namespace shf
