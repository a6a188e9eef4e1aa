#include "http/http_fetch.h"

#include "core/options.h"
#include "http/http_exchange.h"
#include "http/http_retry.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace shf {

namespace {

template <typename Reader>
std::string read_body(Reader& from, size_t most) {
    std::string body;
    std::array<uint8_t, 16 * 1024> piece;
    while (const size_t count = from.read(piece)) {
        if (count > most - body.size())
            throw Error(SHF_E_LIMIT, "the server answers with more than " + plural(most, "byte"),
                        "look at what is at this URL");
        body.append(piece.begin(), piece.begin() + static_cast<ptrdiff_t>(count));
    }
    return body;
}

// Gives an exchange to `use`, and another one after faults that may pass.
template <typename Use>
auto with_retries(const HttpRequest& request, HttpStore& store, const SourceContext& context,
                  Use use) {
    const std::string server = store.server(request);
    HttpRetry retry(server, context);
    for (;;) {
        std::optional<uint64_t> pause;
        try {
            retry.before_request();
            const TakenHttpClient client(HttpClient::take(server).release());
            HttpExchange exchange(*client, request, store, context);
            try {
                return use(exchange);
            } catch (const Error&) {
                pause = exchange.pause();
                throw;
            }
        } catch (const Error& error) {
            retry.after(error, pause);
        }
    }
}

}  // namespace

HttpReply http_ask(const HttpRequest& request, const SourceContext& context, size_t most) {
    const TakenHttpClient client(HttpClient::take(server_of(request.url)).release());
    HttpTransfer transfer(*client, request, context, 0);
    const HttpAnswer answer = transfer.answer();
    return {.answer = answer, .body = read_body(transfer, most)};
}

HttpReply http_fetch(const HttpRequest& request, HttpStore& store, const SourceContext& context,
                     size_t most, std::initializer_list<int> also) {
    return with_retries(request, store, context, [&](HttpExchange& exchange) {
        try {
            const HttpAnswer answer = exchange.answer();
            if (answer.status == 416) throw store.error(answer, {});
            std::string body = read_body(exchange, most);
            return HttpReply{.answer = answer, .body = std::move(body)};
        } catch (const Error&) {
            const std::optional<HttpAnswer>& refusal = exchange.refusal();
            if (!refusal || std::find(also.begin(), also.end(), refusal->status) == also.end())
                throw;
            return HttpReply{.answer = *refusal, .body = {}};
        }
    });
}

std::optional<HttpAnswer> http_look(HttpRequest request, HttpStore& store,
                                    const SourceContext& context) {
    constexpr int none = 404;
    request.method = "HEAD";
    HttpAnswer answer = http_fetch(request, store, context, 0, {none}).answer;
    if (answer.status == none) return std::nullopt;
    return answer;
}

}  // namespace shf
