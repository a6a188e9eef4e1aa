// A service of the machine or container that this process runs on, or nobody: it is asked without a
// proxy, and for a second.
#pragma once

#include "http/http_fetch.h"

#include <optional>
#include <string>

namespace shf {

// Whether the same request may succeed later: services of machines that just began, or are busy.
inline bool passes(const HttpAnswer& answer) {
    return answer.status >= 500 || answer.status == 429;
}

HttpRequest near_request(std::string url);
// The value in a header line. Throws Error(USAGE) when it has an end of line, with `help`.
std::string near_header(const char* name, const std::string& value, const char* help);
// The answer, of any status; nothing when nobody is there, which is remembered for a minute:
// machines that are elsewhere are not asked for each shard. Throws Error.
std::optional<HttpReply> ask_near(const HttpRequest& request, const SourceContext& context);

}  // namespace shf
