#include "http/http_store.h"

#include "core/lowered.h"
#include "core/options.h"
#include "http/http_headers.h"
#include "http/http_url.h"

#include <algorithm>
#include <utility>

namespace shf {

namespace {

class PlainHttp final : public HttpStore {
  public:
    void prepare(HttpRequest& request, const SourceContext& context) override {
        request.url = request.target;
        // HTTP://: what is compared with "http:" must be that.
        const size_t end = std::min(request.url.find(':'), request.url.size());
        request.url.replace(0, end, lowered(request.url.substr(0, end)));
        UserInfo info = take_user(request.url);
        request.user = std::move(info.user);
        request.password = std::move(info.password);
        request.secrets.push_back(request.password);
        add_own_headers(request, context.options);
        add_token(request, context.options);
        request.certificate = true;
    }
};

}  // namespace

Error HttpStore::error(const HttpAnswer& answer, std::string_view /*body*/) const {
    return answer.error();
}

std::string HttpStore::server(const HttpRequest& request) const {
    std::string server = server_of(request.target);
    // Whoever asks: a pause is for all of them.
    const size_t host = server.find("://") + 3, at = server.rfind('@');
    if (at != server.npos && at > host) server.erase(host, at + 1 - host);
    return server;
}

std::shared_ptr<HttpStore> plain_http() {
    static const auto store = std::make_shared<PlainHttp>();
    return store;
}

}  // namespace shf
