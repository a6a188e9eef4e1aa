// JSON that servers and files of credentials have.
#pragma once

#include <nlohmann/json.hpp>

#include <string_view>

namespace shf {

// Discarded (is_discarded()) when it is no JSON, or more than anybody has to say: values take many
// times the memory of their text. At most 500,000 values, nested 64 deep.
nlohmann::json parse_json(std::string_view text);

}  // namespace shf
