// Where the URL of a shard points: the path, or the scheme before it.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace shf {

// What stands before the first colon when that can be a scheme (RFC 3986, 3.1), in lower case; else
// empty. A path may look like that.
std::string uri_scheme(std::string_view text);

// What an expanded URL begins with, in lower case: "s3" of "s3://...", "file" of "file:...", "pipe"
// of "pipe:...", "-" of standard input; empty for a path.
std::string scheme_of(std::string_view url);

// The schemes of samples as messages of ZeroMQ, in lower case only; "+tcp" or "+ipc" may follow.
inline constexpr std::array<std::string_view, 8> message_schemes = {
    "zpush", "zpull", "zpub", "zsub", "zrpush", "zrpull", "zrpub", "zrsub"};
bool is_message_url(std::string_view url);

// Whether an expanded URL names a file of this machine by its path alone.
bool is_local_path(std::string_view url);

// The path of such a URL, or of a "file:" URL. Throws Error(USAGE) for a "file:" URL that names
// none (RFC 8089).
std::string path_of(std::string_view url);

// Whether an expanded URL is a path in the folder of the user: "~/a.tar".
bool starts_at_home(std::string_view url);

// Such a URL or path with that folder, HOME, instead of the ~; any other one as it is. Each of
// `marked` that the name of the folder has gets `mark` in front. Throws Error(USAGE) where HOME is
// not set.
std::string from_home(const std::string& url, std::string_view marked = {}, char mark = '\0');

}  // namespace shf
