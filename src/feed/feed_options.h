// Which options of a consumer a server of a feed obeys: those that say which samples come when.
#pragma once

#include "core/options.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

inline constexpr std::string_view feed_scheme = "feed://";

// Those that differ from their defaults, one "name=value" on each line.
std::string options_for_feed(const Options& options);
// Options of a server with those of a consumer. Throws Error(USAGE) for others.
Options options_of_consumer(const Options& server, std::string_view text);

// Whether the list is one of servers of a feed. Throws Error(USAGE) when only a part of it is.
bool is_feed(std::span<const char* const> urls);
// Their addresses, "feed://HOST:PORT", expanded. Throws Error(USAGE).
std::vector<std::string> feed_addresses(std::span<const char* const> urls, const Options& options);

}  // namespace shf
