#include "decode/box_json.h"

#include "core/error.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace shf {

namespace {

constexpr size_t most_levels = 64;  // lists and objects on the path
constexpr const char* box_path_help = "give the names that lead to the boxes: path=objects.bbox";

bool is_json_digit(char c) {
    return c >= '0' && c <= '9';
}

constexpr std::array<bool, 256> is_structure = [] {
    std::array<bool, 256> table{};
    for (const char c : {'"', '[', ']', '{', '}'}) table[static_cast<uint8_t>(c)] = true;
    return table;
}();

// Whether a text is a number as JSON has it: without "+1", "01", "1." and ".5".
bool is_json_number(std::string_view text) {
    const auto digits = [&] {
        size_t count = 0;
        for (; !text.empty() && is_json_digit(text.front()); ++count) text.remove_prefix(1);
        return count;
    };
    if (text.starts_with('-')) text.remove_prefix(1);
    const bool zero = text.starts_with('0');
    const size_t whole = digits();
    if (whole == 0 || (zero && whole > 1)) return false;
    if (text.starts_with('.')) {
        text.remove_prefix(1);
        if (digits() == 0) return false;
    }
    if (text.starts_with('e') || text.starts_with('E')) {
        text.remove_prefix(1);
        if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
        if (digits() == 0) return false;
    }
    return text.empty();
}

// Reads from front to back. A JSON parser would convert each number of a polygon that nobody asked
// for, which takes ten times as long.
class BoxReader {
  public:
    BoxReader(std::string_view json, std::span<const std::string> path, uint64_t most)
        : json_(json), path_(path), most_(most) {}

    std::vector<JsonBox> read() {
        constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
        if (json_.starts_with(byte_order_mark)) at_ = byte_order_mark.size();
        read_value(0);
        skip_blanks();
        if (at_ < json_.size()) no_json();
        return std::move(boxes_);
    }

  private:
    [[noreturn]] void no_json() const {
        throw Error(SHF_E_FORMAT,
                    "this is no JSON: \"" + escape(json_.substr(at_, 20)) + "\" at byte " +
                        std::to_string(at_) + " of " + std::to_string(json_.size()),
                    "JSON has no NaN and no Infinity, and texts have quotes");
    }

    void skip_blanks() {
        while (at_ < json_.size() && (json_[at_] == ' ' || json_[at_] == '\n' ||
                                      json_[at_] == '\r' || json_[at_] == '\t'))
            ++at_;
    }
    // The next byte that is no blank.
    char next() {
        skip_blanks();
        if (at_ == json_.size()) no_json();
        return json_[at_];
    }
    bool take(char wanted) {
        if (next() != wanted) return false;
        ++at_;
        return true;
    }

    // What begins here, for a message.
    const char* kind() {
        const char c = next();
        if (c == '{') return "an object";
        if (c == '[') return "a list";
        if (c == '"') return "a text";
        if (c == '-' || is_json_digit(c)) return "a number";
        const std::string_view rest = json_.substr(at_);
        if (rest.starts_with("true") || rest.starts_with("false")) return "true or false";
        if (rest.starts_with("null")) return "null";
        no_json();
    }

    // A list: `element` reads each of them.
    template <typename Element>
    void read_list(const Element& element) {
        ++at_;
        if (take(']')) return;
        do element();
        while (take(','));
        if (!take(']')) no_json();
    }

    // At the first `names` names of the path.
    void read_value(size_t names) {
        if (++levels_ > most_levels)
            throw Error(SHF_E_FORMAT, "lists in lists, more than " + std::to_string(most_levels),
                        box_path_help);
        if (names == path_.size()) {
            if (lists_ > 0)
                read_box();
            else
                read_boxes_here();
        } else if (next() == '{') {
            read_object(names);
        } else if (next() == '[') {
            ++lists_;
            read_list([&] { read_value(names); });
            --lists_;
        } else {
            throw Error(SHF_E_FORMAT,
                        std::string(kind()) + " where \"" + escape(path_[names]) + "\" should be",
                        box_path_help);
        }
        --levels_;
    }

    void read_object(size_t names) {
        const std::string& wanted = path_[names];
        bool found = false;
        ++at_;
        if (!take('}')) {
            do {
                const bool is_wanted = read_name() == wanted;
                if (!take(':')) no_json();
                if (!is_wanted) {
                    skip_value();
                    continue;
                }
                if (std::exchange(found, true))
                    throw Error(SHF_E_FORMAT,
                                "\"" + escape(wanted) + "\" is there twice in one object",
                                "write JSON whose names are unique");
                read_value(names + 1);
            } while (take(','));
            if (!take('}')) no_json();
        }
        if (!found)
            throw Error(SHF_E_FORMAT, "an object without \"" + escape(wanted) + "\"",
                        box_path_help);
    }

    std::string read_name() {
        if (next() != '"') no_json();
        const size_t begin = at_;
        skip_text();
        const std::string_view quoted = json_.substr(begin, at_ - begin);
        if (quoted.find('\\') == quoted.npos)
            return std::string(quoted.substr(1, quoted.size() - 2));
        const nlohmann::json name = nlohmann::json::parse(quoted, nullptr, false);
        if (!name.is_string()) {
            at_ = begin;
            no_json();
        }
        return name.get<std::string>();
    }

    void read_boxes_here() {
        if (next() != '[')
            throw Error(SHF_E_FORMAT, std::string("where boxes should be is ") + kind(),
                        box_path_help);
        read_list([&] { read_box(); });
    }

    void read_box() {
        if (next() != '[')
            throw Error(SHF_E_FORMAT,
                        "box " + std::to_string(boxes_.size()) + " is " + kind() + ", and no list",
                        box_path_help);
        if (boxes_.size() == most_)
            throw Error(
                SHF_E_LIMIT,
                "more boxes than the " + std::to_string(most_) + " that max_decoded has room for",
                "raise max_decoded if you trust the source");
        const std::string name = "box " + std::to_string(boxes_.size());
        JsonBox box{};
        uint64_t count = 0;
        read_list([&] {
            const char c = next();
            if (c != '-' && !is_json_digit(c))
                throw Error(SHF_E_FORMAT, name + " has " + kind() + " in the place of a number",
                            box_path_help);
            const double number = read_number();
            if (count < box.size()) box[count] = number;
            ++count;
        });
        if (count != box.size())
            throw Error(SHF_E_FORMAT,
                        name + " is a list of " + plural(count, "number") + ", and not of four",
                        box_path_help);
        boxes_.push_back(box);
    }

    double read_number() {
        const size_t end = std::min(json_.find_first_not_of("0123456789+-.eE", at_), json_.size());
        const std::string_view text = json_.substr(at_, end - at_);
        if (!is_json_number(text)) no_json();
        double number = 0;
        if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc()) {
            // Too small, which is 0, or too large.
            const auto value = nlohmann::json::parse(text, nullptr, false);
            if (!value.is_number())
                throw Error(
                    SHF_E_FORMAT,
                    "the number at byte " + std::to_string(at_) + " is too large for a double",
                    "boxes are in pixels, or from 0 to 1 with relative");
            number = value.get<double>();
        }
        at_ = end;
        return number;
    }

    // Beside the path: brackets and quotes are followed, and nothing else is looked at.
    void skip_value() {
        const char first = next();
        if (first == '"') return skip_text();
        if (first != '[' && first != '{') return skip_word();
        std::string open;  // what closes the lists and objects that are open
        for (; at_ < json_.size(); ++at_) {
            const char c = json_[at_];
            if (!is_structure[static_cast<uint8_t>(c)]) continue;
            if (c == '"') {
                skip_text();
                --at_;
            } else if (c == '[' || c == '{') {
                open += c == '[' ? ']' : '}';
            } else {
                if (open.back() != c) no_json();
                open.pop_back();
                if (open.empty()) return void(++at_);
            }
        }
        no_json();
    }

    // A number, true, false, null, and NaN as Python writes it.
    void skip_word() {
        const size_t begin = at_;
        while (at_ < json_.size() &&
               std::string_view(" \n\r\t,]}:[{\"").find(json_[at_]) == std::string_view::npos)
            ++at_;
        if (at_ == begin) no_json();
    }

    void skip_text() {
        for (++at_; at_ < json_.size(); ++at_) {
            if (json_[at_] == '"') return void(++at_);
            if (json_[at_] == '\\') ++at_;
        }
        at_ = json_.size();
        no_json();
    }

    const std::string_view json_;
    const std::span<const std::string> path_;
    const uint64_t most_;
    size_t at_ = 0;
    size_t levels_ = 0, lists_ = 0;  // on the path
    std::vector<JsonBox> boxes_;
};

}  // namespace

std::vector<JsonBox> read_boxes(std::span<const uint8_t> json, std::span<const std::string> path,
                                uint64_t most) {
    return BoxReader({reinterpret_cast<const char*>(json.data()), json.size()}, path, most).read();
}

}  // namespace shf
