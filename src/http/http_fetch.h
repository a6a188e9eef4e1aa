// Small answers as a whole: lists, credentials, metadata.
#pragma once

#include "http/http_store.h"

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>

namespace shf {

struct HttpReply {
    HttpAnswer answer;  // of any status
    std::string body;
};

// Sends one request, without HttpStore and its repairs: `url` must be set. Redirects are not
// followed. Throws Error: NET_*, TLS, CANCELLED, and LIMIT for a body of more than `most` bytes.
HttpReply http_ask(const HttpRequest& request, const SourceContext& context,
                   size_t most = size_t{64} << 20);

// Sends a request by the rules of `store`, and again after faults that may pass, as HttpRetry says.
// The answer is a success, 2xx or one of `also` (without a body); throws Error otherwise.
HttpReply http_fetch(const HttpRequest& request, HttpStore& store, const SourceContext& context,
                     size_t most = size_t{64} << 20, std::initializer_list<int> also = {});

// The answer to a request of HEAD, likewise; nothing: there is no such object.
std::optional<HttpAnswer> http_look(HttpRequest request, HttpStore& store,
                                    const SourceContext& context);

}  // namespace shf
