#include "decode/box_json.h"

#include "core/error.h"

#include <nlohmann/json.hpp>

#include <optional>

namespace shf {

namespace {

using BoxJson = nlohmann::json;

constexpr size_t most_levels = 64;  // lists and objects on the path
constexpr const char* box_path_help = "give the names that lead to the boxes: path=objects.bbox";

// Called by the parser for each value in turn.
class BoxReader final : public nlohmann::json_sax<BoxJson> {
  public:
    BoxReader(std::span<const std::string> path, uint64_t most) : path_(path), most_(most) {}

    std::vector<JsonBox> take() { return std::move(boxes_); }

    bool null() override { return scalar("null"); }
    bool boolean(bool /*value*/) override { return scalar("true or false"); }
    bool number_integer(BoxJson::number_integer_t value) override {
        return number(static_cast<double>(value));
    }
    bool number_unsigned(BoxJson::number_unsigned_t value) override {
        return number(static_cast<double>(value));
    }
    bool number_float(BoxJson::number_float_t value, const std::string& /*text*/) override {
        return number(value);
    }
    bool string(std::string& /*value*/) override { return scalar("a text"); }
    bool binary(BoxJson::binary_t& /*value*/) override { return scalar("bytes"); }

    bool start_object(size_t /*size*/) override {
        if (beside_ > 0) return ++beside_ > 0;
        const std::optional<size_t> at = enter();
        if (!at) return ++beside_ > 0;
        if (is_in_boxes() || *at == path_.size()) refuse_value("an object");
        push({.kind = Kind::object, .at = *at});
        return true;
    }
    bool key(std::string& name) override {
        if (beside_ > 0) return true;
        Level& object = levels_.back();
        object.is_wanted = name == path_[object.at];
        if (object.is_wanted && std::exchange(object.has_wanted, true))
            throw Error(SHF_E_FORMAT, "\"" + escape(name) + "\" is there twice in one object",
                        "write JSON whose names are unique");
        return true;
    }
    bool end_object() override {
        if (beside_ > 0) return --beside_, true;
        const Level object = levels_.back();
        levels_.pop_back();
        if (!object.has_wanted)
            throw Error(SHF_E_FORMAT, "an object without \"" + escape(path_[object.at]) + "\"",
                        box_path_help);
        return true;
    }
    bool start_array(size_t /*size*/) override {
        if (beside_ > 0) return ++beside_ > 0;
        const std::optional<size_t> at = enter();
        if (!at) return ++beside_ > 0;
        if (is_in(Kind::box)) refuse_value("a list");
        const bool is_box = is_in(Kind::boxes) || (*at == path_.size() && lists_ > 0);
        if (is_box) {
            if (boxes_.size() == most_)
                throw Error(SHF_E_LIMIT,
                            "more boxes than the " + std::to_string(most_) +
                                " that max_decoded has room for",
                            "raise max_decoded if you trust the source");
            numbers_ = 0;
            boxes_.emplace_back();
            push({.kind = Kind::box, .at = *at});
        } else if (*at == path_.size()) {
            push({.kind = Kind::boxes, .at = *at});
        } else {
            ++lists_;
            push({.kind = Kind::list, .at = *at});
        }
        return true;
    }
    bool end_array() override {
        if (beside_ > 0) return --beside_, true;
        const Kind kind = levels_.back().kind;
        levels_.pop_back();
        if (kind == Kind::list) --lists_;
        if (kind == Kind::box && numbers_ != 4)
            throw Error(
                SHF_E_FORMAT,
                box_name() + " is a list of " + plural(numbers_, "number") + ", and not of four",
                box_path_help);
        return true;
    }
    bool parse_error(size_t position, const std::string& token,
                     const nlohmann::detail::exception& /*error*/) override {
        throw Error(SHF_E_FORMAT,
                    "this is no JSON: \"" + escape(token.substr(0, 40)) + "\" up to byte " +
                        std::to_string(position),
                    "JSON has no NaN and no Infinity, and is UTF-8");
    }

  private:
    // Of what is open; `list` is on the way.
    enum class Kind : uint8_t { object, list, boxes, box };
    struct Level {
        Kind kind;
        size_t at;  // names of the path that led here
        bool is_wanted = false, has_wanted = false;
    };

    [[nodiscard]] bool is_in(Kind kind) const {
        return !levels_.empty() && levels_.back().kind == kind;
    }
    [[nodiscard]] bool is_in_boxes() const { return is_in(Kind::boxes) || is_in(Kind::box); }

    // How much of the path leads to the value that begins; nothing beside the path.
    [[nodiscard]] std::optional<size_t> enter() const {
        if (levels_.empty()) return 0;
        const Level& level = levels_.back();
        if (level.kind != Kind::object) return level.at;
        return level.is_wanted ? std::optional(level.at + 1) : std::nullopt;
    }
    void push(const Level& level) {
        if (levels_.size() == most_levels)
            throw Error(SHF_E_FORMAT, "lists in lists, more than " + std::to_string(most_levels),
                        box_path_help);
        levels_.push_back(level);
    }
    bool number(double value) {
        if (beside_ > 0 || !is_in(Kind::box)) return scalar("a number");
        if (numbers_ < 4) boxes_.back()[numbers_] = value;
        ++numbers_;
        return true;
    }
    bool scalar(const char* what) {
        if (beside_ == 0 && enter()) refuse_value(what);
        return true;
    }
    [[nodiscard]] std::string box_name() const {
        return "box " + std::to_string(boxes_.size() - 1);
    }
    [[noreturn]] void refuse_value(const char* what) const {
        if (is_in(Kind::box))
            throw Error(SHF_E_FORMAT, box_name() + " has " + what + " in the place of a number",
                        box_path_help);
        if (is_in(Kind::boxes))
            throw Error(SHF_E_FORMAT,
                        "box " + std::to_string(boxes_.size()) + " is " + what + ", and no list",
                        box_path_help);
        const size_t at = enter().value_or(0);
        if (at == path_.size())
            throw Error(SHF_E_FORMAT, std::string("where boxes should be is ") + what,
                        box_path_help);
        throw Error(SHF_E_FORMAT,
                    std::string(what) + " where \"" + escape(path_[at]) + "\" should be",
                    box_path_help);
    }

    const std::span<const std::string> path_;
    const uint64_t most_;
    std::vector<Level> levels_;  // none beside the path
    uint64_t beside_ = 0;        // lists and objects that are open beside the path
    size_t lists_ = 0;           // on the path
    uint64_t numbers_ = 0;       // of the latest box
    std::vector<JsonBox> boxes_;
};

}  // namespace

std::vector<JsonBox> read_boxes(std::span<const uint8_t> json, std::span<const std::string> path,
                                uint64_t most) {
    BoxReader reader(path, most);
    BoxJson::sax_parse(json.begin(), json.end(), &reader);
    return reader.take();
}

}  // namespace shf
