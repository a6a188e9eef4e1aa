#include "url/braces.h"

#include "core/error.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

namespace shf {

namespace {

constexpr unsigned max_depth = 100;  // Python's recursion limit stops braceexpand near 300
constexpr uint64_t many = std::numeric_limits<uint64_t>::max();
constexpr int64_t max_number = 1'000'000'000'000'000'000;
constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

uint64_t add(uint64_t a, uint64_t b) {
    uint64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? many : sum;
}

uint64_t multiply(uint64_t a, uint64_t b) {
    uint64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? many : product;
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// Takes "-?[0-9]+" from the front of `text`.
std::string_view take_number(std::string_view& text, bool sign) {
    size_t size = sign && !text.empty() && text[0] == '-' ? 1 : 0;
    const size_t digits = size;
    while (size < text.size() && is_digit(text[size])) ++size;
    const std::string_view number = size == digits ? std::string_view() : text.substr(0, size);
    text.remove_prefix(number.size());
    return number;
}

bool take(std::string_view& text, std::string_view what) {
    if (!text.starts_with(what)) return false;
    text.remove_prefix(what.size());
    return true;
}

// The rest of a range after its second end: nothing, or "..step". The step's sign is ignored and 0
// counts as 1. A step past every range ends it after its first value, as any larger one does.
bool take_step(std::string_view text, int64_t& step) {
    step = 1;
    if (text.empty()) return true;
    if (!take(text, "..")) return false;
    take(text, "-");
    const std::string_view digits = take_number(text, false);
    if (digits.empty() || !text.empty()) return false;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), step);
    if (result.ec != std::errc() || step > 2 * max_number) step = 2 * max_number + 1;
    if (step == 0) step = 1;
    return true;
}

// Sets the count of a range from its ends and makes the step point from the first to the last.
template <typename Node>
void set_range(Node& node, int64_t first, int64_t last, int64_t step) {
    const int64_t length = first < last ? last - first : first - last;
    node.first = first;
    node.step = first < last ? step : -step;
    node.count = static_cast<uint64_t>(length / step) + 1;
}

// A backslash before any character but a newline goes (Python: re.sub(r'\\(.)', r'\1')).
std::string unescape(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] != '\n') ++i;
        out += text[i];
    }
    return out;
}

[[noreturn]] void unbalanced(char brace, size_t position) {
    throw Error(SHF_E_USAGE,
                std::string("unbalanced '") + brace + "' at position " + std::to_string(position),
                "close the brace, put a backslash before it, or set expand=false");
}

}  // namespace

BracePattern::BracePattern(std::string_view text)
    : root_(parse_product(text, 0, 0)), escapes_(text.find('\\') != text.npos) {}

BracePattern::Node BracePattern::literal(std::string_view text) {
    Node node;
    node.text = text;
    return node;
}

void BracePattern::finish_product(Node& node) {
    node.kind = Kind::product;
    node.count = 1;
    for (size_t i = node.parts.size(); i-- > 0;) {
        node.parts[i].stride = node.count;
        node.count = multiply(node.count, node.parts[i].count);
    }
}

// `position` is where `text` starts in the whole pattern. Follows braceexpand step by step, because
// its treatment of a stray '}' that a later '{' balances, as in "}{", is an accident of its loop.
BracePattern::Node BracePattern::parse_product(std::string_view text, size_t position,
                                               unsigned depth) {
    if (depth > max_depth)
        throw Error(SHF_E_USAGE,
                    "braces are nested more than " + std::to_string(max_depth) +
                        " deep at position " + std::to_string(position),
                    "put a backslash before braces that are part of the name");
    Node node;
    size_t start = 0, opened = 0, closed = 0;
    int64_t level = 0;
    size_t i = 0;
    for (; i < text.size(); ++i) {
        if (text[i] == '\\') {
            ++i;
        } else if (text[i] == '{') {
            if (level == 0) {
                if (i > start) node.parts.push_back(literal(text.substr(start, i - start)));
                start = opened = i;
            }
            ++level;
        } else if (text[i] == '}') {
            if (level == 0) closed = i;
            if (--level != 0) continue;
            const std::string_view inner = text.substr(start + 1, i - start - 1);
            const size_t inner_position = position + start + 1;
            Node group;
            if (parse_group(inner, inner_position, depth + 1, group)) {
                node.parts.push_back(std::move(group));
            } else {  // neither list nor range: the braces stay, what is inside is expanded
                node.parts.push_back(literal("{"));
                node.parts.push_back(parse_product(inner, inner_position, depth + 1));
                node.parts.push_back(literal("}"));
            }
            start = i + 1;
        }
    }
    if (level > 0) unbalanced('{', position + opened);
    if (level < 0) unbalanced('}', position + closed);
    if (start < text.size()) node.parts.push_back(literal(text.substr(start)));
    finish_product(node);
    return node;
}

bool BracePattern::parse_group(std::string_view text, size_t position, unsigned depth, Node& out) {
    return parse_numbers(text, position, out) || parse_letters(text, out) ||
           parse_sequence(text, position, depth, out);
}

bool BracePattern::parse_numbers(std::string_view text, size_t position, Node& out) {
    const std::string_view first_text = take_number(text, true);
    if (first_text.empty() || !take(text, "..")) return false;
    const std::string_view last_text = take_number(text, true);
    int64_t step = 0;
    if (last_text.empty() || !take_step(text, step)) return false;
    const auto parse = [&](std::string_view digits) {
        int64_t value = 0;
        const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (result.ec != std::errc() || value > max_number || value < -max_number)
            throw Error(SHF_E_USAGE,
                        "number too large in braces at position " + std::to_string(position),
                        "ranges go from -10^18 to 10^18");
        return value;
    };
    const auto padded = [](std::string_view digits) {
        return digits != "0" && digits != "-0" &&
               (digits.starts_with("0") || digits.starts_with("-0"));
    };
    out.kind = Kind::numbers;
    set_range(out, parse(first_text), parse(last_text), step);
    if (padded(first_text) || padded(last_text))
        out.width = std::max(first_text.size(), last_text.size());
    return true;
}

bool BracePattern::parse_letters(std::string_view text, Node& out) {
    if (text.size() < 4) return false;
    const size_t first = alphabet.find(text[0]), last = alphabet.find(text[3]);
    int64_t step = 0;
    if (first == alphabet.npos || last == alphabet.npos || text.substr(1, 2) != ".." ||
        !take_step(text.substr(4), step))
        return false;
    out.kind = Kind::letters;
    set_range(out, static_cast<int64_t>(first), static_cast<int64_t>(last), step);
    return true;
}

bool BracePattern::parse_sequence(std::string_view text, size_t position, unsigned depth,
                                  Node& out) {
    size_t start = 0;
    int64_t level = 0;
    std::vector<Node> parts;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\') {
            ++i;
        } else if (text[i] == '{') {
            ++level;
        } else if (text[i] == '}') {
            --level;
        } else if (text[i] == ',' && level == 0) {
            parts.push_back(parse_product(text.substr(start, i - start), position + start, depth));
            start = i + 1;
        }
    }
    if (parts.empty()) return false;
    parts.push_back(parse_product(text.substr(start), position + start, depth));
    out.kind = Kind::sequence;
    out.count = 0;
    for (const Node& part : parts) out.count = add(out.count, part.count);
    out.parts = std::move(parts);
    return true;
}

std::string BracePattern::at(uint64_t index) const {
    std::string out;
    build(root_, index, escapes_, out);
    return out;
}

void BracePattern::build(const Node& node, uint64_t index, bool escapes, std::string& out) {
    switch (node.kind) {
        case Kind::literal: out += node.text; break;
        case Kind::letters:
            out +=
                alphabet[static_cast<size_t>(node.first + static_cast<int64_t>(index) * node.step)];
            break;
        case Kind::numbers: {
            const int64_t value = node.first + static_cast<int64_t>(index) * node.step;
            const std::string digits = std::to_string(value < 0 ? -value : value);
            const size_t size = digits.size() + (value < 0 ? 1 : 0);
            if (value < 0) out += '-';
            if (size < node.width) out.append(node.width - size, '0');
            out += digits;
            break;
        }
        case Kind::sequence: {
            size_t i = 0;
            while (i + 1 < node.parts.size() && index >= node.parts[i].count)
                index -= node.parts[i++].count;
            build(node.parts[i], index, escapes, out);
            break;
        }
        case Kind::product: {
            const size_t start = out.size();
            for (const Node& part : node.parts)
                build(part, index / part.stride % part.count, escapes, out);
            // braceexpand removes backslashes once on each level of nesting, so inside braces a
            // doubled backslash can go altogether. Programs that work with it count on it.
            if (escapes && out.find('\\', start) != out.npos)
                out.replace(start, out.npos, unescape(std::string_view(out).substr(start)));
            break;
        }
    }
}

bool BracePattern::may_give(std::string_view goal, Match match) const {
    const uint64_t states = advance(root_, 1, goal, match);
    return (states >> goal.size() & 1) != 0;
}

// Follows all expansions of `node` at once: bit k of `states` is set when some expansion so far is
// the first k bytes of `goal`. The cost is that of the pattern, not of its ten million expansions.
uint64_t BracePattern::advance(const Node& node, uint64_t states, std::string_view goal,
                               Match match) {
    const uint64_t complete = match == Match::prefix ? states & uint64_t{1} << goal.size() : 0;
    switch (node.kind) {
        case Kind::literal:
            for (const char c : node.text) {
                uint64_t next = match == Match::prefix ? states & uint64_t{1} << goal.size() : 0;
                for (size_t k = 0; k < goal.size(); ++k)
                    if ((states >> k & 1) != 0 && goal[k] == c) next |= uint64_t{2} << k;
                if (c == '\\') next |= states;  // it may be removed
                states = next;
            }
            return states;
        case Kind::numbers: return complete;  // there is always a digit, and never one in `goal`
        case Kind::letters: {
            uint64_t next = complete;
            for (uint64_t i = 0; i < node.count; ++i) {
                std::string letter;
                build(node, i, false, letter);
                next |= advance(literal(letter), states, goal, match);
            }
            return next;
        }
        case Kind::sequence: {
            uint64_t next = 0;
            for (const Node& part : node.parts) next |= advance(part, states, goal, match);
            return next;
        }
        case Kind::product:
            for (const Node& part : node.parts) states = advance(part, states, goal, match);
            return states;
    }
    return states;
}

}  // namespace shf
