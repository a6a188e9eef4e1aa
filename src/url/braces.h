// Brace patterns in URLs, with the rules of Python's braceexpand 0.1.7, as a tree that computes any
// of its expansions on demand instead of a list of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

class BracePattern {
  public:
    // Throws Error(USAGE) for unbalanced braces, with their position, and for numbers and nesting
    // that are out of all reason.
    explicit BracePattern(std::string_view text);

    // The number of expansions, at least 1; UINT64_MAX: that many or more.
    [[nodiscard]] uint64_t count() const { return root_.count; }
    // Expansion number `index` < count(); the rightmost group varies fastest.
    [[nodiscard]] std::string at(uint64_t index) const;

    enum class Match : uint8_t { prefix, whole };
    // True when some expansion starts with `goal` or equals it (at most 63 bytes, no digit in it).
    // Where backslashes make the answer hard it errs on the side of true: its use is to refuse.
    [[nodiscard]] bool may_give(std::string_view goal, Match match) const;

  private:
    enum class Kind : uint8_t {
        literal,   // `text`
        numbers,   // `first`, `first + step`, ... padded to `width`
        letters,   // the same over A-Z a-z
        product,   // one expansion of each part
        sequence,  // the expansions of the parts, one after another
    };
    struct Node {
        Kind kind = Kind::literal;
        uint64_t count = 1;
        uint64_t stride = 1;  // inside a product: expansions of all parts to the right
        int64_t first = 0;
        int64_t step = 1;
        size_t width = 0;
        std::string text;
        std::vector<Node> parts;
    };

    static Node literal(std::string_view text);
    static Node parse_product(std::string_view text, size_t position, unsigned depth);
    static bool parse_group(std::string_view text, size_t position, unsigned depth, Node& out);
    static bool parse_numbers(std::string_view text, size_t position, Node& out);
    static bool parse_letters(std::string_view text, Node& out);
    static bool parse_sequence(std::string_view text, size_t position, unsigned depth, Node& out);
    static void finish_product(Node& node);
    static void build(const Node& node, uint64_t index, bool escapes, std::string& out);
    static uint64_t advance(const Node& node, uint64_t states, std::string_view goal, Match match);

    Node root_;
    bool escapes_ = false;  // some backslash in the pattern
};

}  // namespace shf
