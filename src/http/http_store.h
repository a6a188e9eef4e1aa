// What a server wants beyond plain HTTP: where its objects are, credentials, signatures; and how it
// refuses.
#pragma once

#include "http/http_answer.h"
#include "http/http_request.h"
#include "io/source_context.h"

#include <memory>
#include <string>
#include <string_view>

namespace shf {

// Any number of threads, in forked children too.
class HttpStore {
  public:
    virtual ~HttpStore() = default;

    // Completes a request just before it is sent, also when it is sent again: from `target` and the
    // rest it sets `url`, and adds headers. May ask servers for credentials. Throws Error.
    virtual void prepare(HttpRequest& request, const SourceContext& context) = 0;
    // After an answer that is no success, with the first bytes of its body. True when something was
    // learned by which the same request may succeed (the region, the server's clock, newer
    // credentials): then it is prepared and sent again at once, at most three times. Throws the
    // Error itself where that depends on what was sent.
    virtual bool repair(const HttpRequest& /*sent*/, const HttpAnswer& /*answer*/,
                        std::string_view /*body*/, const SourceContext& /*context*/) {
        return false;
    }
    // The error that such an answer means. Shows no secret.
    [[nodiscard]] virtual Error error(const HttpAnswer& answer, std::string_view body) const;
    // What tells this version of the object from others, as states and caches keep it; empty: the
    // server gives nothing. Equal texts mean equal bytes only when pins() is true.
    [[nodiscard]] virtual std::string version(const HttpAnswer& answer) const {
        return answer.etag;
    }
    // Whether parts of the object may be asked for and joined: pin() makes sure that they are of
    // one version (H8).
    [[nodiscard]] virtual bool pins(const HttpAnswer& answer) const {
        return !answer.strong_tag().empty();
    }
    // Asks for the version of `first`, the answer by which the object was opened, alone.
    virtual void pin(HttpRequest& request, const HttpAnswer& first) const {
        request.if_match = first.strong_tag();
    }
    // Whether an answer to HEAD has the digest of an object, where answers with a range have none.
    [[nodiscard]] virtual bool has_digests() const { return false; }
    // Whether redirects are followed. Signed requests are not valid elsewhere.
    [[nodiscard]] virtual bool follows_redirects() const { return true; }
    // Whether later requests for the object are sent at once to where the first one was redirected
    // to.
    [[nodiscard]] virtual bool redirects_last() const { return true; }
    // What a pause that the server asks for holds for: all requests with the same text.
    [[nodiscard]] virtual std::string server(const HttpRequest& request) const;
};

// http:// and https:// URLs as they are: `target` is the URL. With the headers and the token of the
// options.
std::shared_ptr<HttpStore> plain_http();

}  // namespace shf
