#include "http/http_store.h"

#include "core/options.h"
#include "http/http_headers.h"
#include "http/http_url.h"

#include <utility>

namespace shf {

namespace {

class PlainHttp final : public HttpStore {
  public:
    void prepare(HttpRequest& request, const SourceContext& context) override {
        request.url = request.target;
        UserInfo info = take_user(request.url);
        request.user = std::move(info.user);
        request.password = std::move(info.password);
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
    return server_of(request.target);
}

std::shared_ptr<HttpStore> plain_http() {
    static const auto store = std::make_shared<PlainHttp>();
    return store;
}

}  // namespace shf
