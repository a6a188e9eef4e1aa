// What may be shown of a URL, a command or a program's error output.
#pragma once

#include <string>
#include <string_view>

namespace shf {

// The URL without secrets, for messages and samples: no userinfo (but the container of abfs://,
// which is none), no query string; in a pipe command the same for every URL in it, and nothing of
// headers, user names and tokens.
std::string redact(const std::string& url);

// The text without the secrets of URLs in it, of options that carry them (-H, -u, --token, ...) and
// of words such as SECRET_KEY=value. Control bytes stay.
std::string redact_command(std::string_view text);

// The text with control bytes and invalid UTF-8 as \xNN. In contrast to escape() it is never cut,
// and quotes and most backslashes stay, since shell commands are full of them.
std::string printable(std::string_view text);

}  // namespace shf
