#include "decode/box_json.h"

#include "core/error.h"
#include "decode/json_scan.h"

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

// Reads from front to back.
class BoxReader {
  public:
    BoxReader(std::span<const uint8_t> json, std::span<const std::string> path, uint64_t most)
        : scan_(json, "this is no JSON", "JSON has no NaN and no Infinity, and texts have quotes"),
          path_(path),
          most_(most) {}

    std::vector<JsonBox> read() {
        read_value(0);
        scan_.expect_end();
        return std::move(boxes_);
    }

  private:
    // What begins here, for a message.
    const char* kind() {
        const char c = scan_.next();
        if (c == '{') return "an object";
        if (c == '[') return "a list";
        if (c == '"') return "a text";
        if (c == '-' || is_json_digit(c)) return "a number";
        const std::string_view rest = scan_.rest();
        if (rest.starts_with("true") || rest.starts_with("false")) return "true or false";
        if (rest.starts_with("null")) return "null";
        scan_.fail("a value");
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
        } else if (scan_.next() == '{') {
            read_object(names);
        } else if (scan_.next() == '[') {
            ++lists_;
            scan_.read_list([&] { read_value(names); });
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
        scan_.read_object(wanted, [&](bool is_wanted) {
            if (!is_wanted) return scan_.skip_value();
            if (std::exchange(found, true))
                throw Error(SHF_E_FORMAT, "\"" + escape(wanted) + "\" is there twice in one object",
                            "write JSON whose names are unique");
            read_value(names + 1);
        });
        if (!found)
            throw Error(SHF_E_FORMAT, "an object without \"" + escape(wanted) + "\"",
                        box_path_help);
    }

    void read_boxes_here() {
        if (scan_.next() != '[')
            throw Error(SHF_E_FORMAT, std::string("where boxes should be is ") + kind(),
                        box_path_help);
        scan_.read_list([&] { read_box(); });
    }

    void read_box() {
        if (scan_.next() != '[')
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
        scan_.read_list([&] {
            const char c = scan_.next();
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
        const std::string_view rest = scan_.rest();
        const std::string_view text =
            rest.substr(0, std::min(rest.find_first_not_of("0123456789+-.eE"), rest.size()));
        if (!is_json_number(text)) scan_.fail("a number");
        double number = 0;
        if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc()) {
            // Too small, which is 0, or too large.
            const auto value = nlohmann::json::parse(text, nullptr, false);
            if (!value.is_number())
                throw Error(SHF_E_FORMAT,
                            "the number at byte " + std::to_string(scan_.at()) +
                                " of the field is too large for a double",
                            "boxes are in pixels, or from 0 to 1 with relative");
            number = value.get<double>();
        }
        scan_.move_to(scan_.at() + text.size());
        return number;
    }

    JsonScan scan_;
    const std::span<const std::string> path_;
    const uint64_t most_;
    size_t levels_ = 0, lists_ = 0;  // on the path
    std::vector<JsonBox> boxes_;
};

}  // namespace

std::vector<JsonBox> read_boxes(std::span<const uint8_t> json, std::span<const std::string> path,
                                uint64_t most) {
    return BoxReader(json, path, most).read();
}

}  // namespace shf
