// Words and what they mean.
#pragma once

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

}  // namespace shf
