// Where a store is, and objects on it.
#pragma once

#include <string>
#include <string_view>

namespace shf {

// The http:// or https:// URL of a server as its requests name it: without "/" at its end and
// without a port that is usual. Throws Error(USAGE) for other texts. `store` names it in the
// message.
std::string checked_endpoint(std::string url, const char* store, const char* help);
// Throws Error(USAGE) for what is no name of a bucket. Shows nothing of what may be credentials in
// front of it: "KEY:SECRET@bucket", as URLs of Hadoop have.
[[noreturn]] void refuse_bucket(std::string_view bucket, const char* help);
// "/" and the key as a path: percent-encoded but for "/"; segments of dots too, which would be
// resolved on the way.
std::string encoded_path(std::string_view key);
// Such a path as servers sign it: they decode those dots first.
std::string signed_path(std::string path);

}  // namespace shf
