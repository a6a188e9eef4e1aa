// Objects of JSON that verbs print.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace cli {

// Members stay in the order in which they are set.
using Json = nlohmann::ordered_json;

// One line; bytes that are no UTF-8 become U+FFFD.
inline std::string line_of(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

inline Json json_of(std::string_view bytes) {
    return std::string(bytes);
}

}  // namespace cli
