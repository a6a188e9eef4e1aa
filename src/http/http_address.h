// Which addresses belong to everybody.
#pragma once

#include <string_view>

namespace shf {

// False for loopback, link-local (with the metadata services of clouds), private and unspecified
// addresses, IPv4 and IPv6 (RFC 6890), and for what is no address.
bool is_public_address(std::string_view address);

}  // namespace shf
