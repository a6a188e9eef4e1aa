// URLs of the network, taken apart and joined by libcurl (RFC 3986).
#pragma once

#include <string>
#include <string_view>

namespace shf {

struct UserInfo {
    std::string user{}, password{};  // decoded
};

// Takes user and password out of `url`. Throws Error(USAGE) for what is no URL.
UserInfo take_user(std::string& url);

// What `reference`, relative or not, means in a document at `base`. Throws Error(NET_PERMANENT).
std::string resolve_url(const std::string& base, const std::string& reference);

// Whether both have the same scheme, host and port.
bool same_origin(const std::string& one, const std::string& other);

}  // namespace shf
