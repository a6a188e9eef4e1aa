// A line of JSON about something: one object.
#pragma once

#include "cli/terminal.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace cli {

class JsonLine {
  public:
    // Bytes of an archive as text a terminal may have, as printable() makes it. When that is not
    // the same as the bytes, these follow in hexadecimal as NAME_hex.
    JsonLine& bytes(std::string_view name, std::string_view value);
    JsonLine& text(std::string_view name, std::string_view value) {
        return raw(name, json_text(value));
    }
    JsonLine& number(std::string_view name, uint64_t value) {
        return raw(name, std::to_string(value));
    }
    JsonLine& number(std::string_view name, double value);
    JsonLine& flag(std::string_view name, bool value) {
        return raw(name, value ? "true" : "false");
    }
    // `json` as it is.
    JsonLine& raw(std::string_view name, std::string_view json);

    [[nodiscard]] std::string object() const { return text_ + "}"; }
    [[nodiscard]] std::string line() const { return text_ + "}\n"; }

  private:
    std::string text_ = "{";
};

// "[a,b]" of values that are JSON.
template <typename Values>
std::string json_list(const Values& values) {
    std::string made = "[";
    for (const std::string& value : values) {
        if (made.size() > 1) made += ',';
        made += value;
    }
    return made + "]";
}

}  // namespace cli
