// Shared Key of Azure Storage: the authorization of a request by a key of the account that is not
// sent.
#pragma once

#include "http/http_request.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace shf {

// "Fri, 24 May 2013 00:00:00 GMT", in any locale.
std::string http_date(int64_t time);

// What is signed of a request that is complete: `url` without credentials, and all headers, with
// x-ms-date and x-ms-version. For its test.
std::string shared_key_text(const HttpRequest& request, const std::string& account);
// The value of the header Authorization; `key` is decoded. Throws Error(UNSUPPORTED) without
// libcrypto.
std::string shared_key(const HttpRequest& request, const std::string& account,
                       std::string_view key);

}  // namespace shf
