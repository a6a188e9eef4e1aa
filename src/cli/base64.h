// Base64 as RFC 4648 section 4 has it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cli {

std::string base64(std::string_view bytes);
// None for other characters, or another length than a multiple of four.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace cli
