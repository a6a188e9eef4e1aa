// Which format a shard or archive has, for reports and for the choice of a faster way.
#pragma once

#include <optional>
#include <string>

namespace cli {

// "tar", "tar.gz", "zip", "7z" and so on: by the first bytes of a local file, else by the suffix of
// the URL; "tar" where neither says anything. What is compressed is taken for a tar. A pipe is
// never opened.
std::string format_of(const std::string& url);

// The path of a URL that names a regular file of this machine.
std::optional<std::string> local_file(const std::string& url);

}  // namespace cli
