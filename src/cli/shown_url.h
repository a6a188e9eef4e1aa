// What may be shown of a URL.
#pragma once

#include <string>

namespace cli {

// The URL without secrets: no user and password, no query. Of a command its first word alone.
std::string shown_url(const std::string& url);

}  // namespace cli
