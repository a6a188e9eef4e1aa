// A tokenizer that asks the program, which answers on a thread of its own (shf_requests).
#include "batch/tokens.h"
#include "core/error.h"
#include "io/request_queue.h"

#include <memory>
#include <new>
#include <utility>

namespace shf {

namespace {

struct TokenServer {
    std::shared_ptr<RequestQueue> queue;
    RequestEvents release;  // one
};

int32_t ask_for_tokens(void* ctx, const shf_text* texts, size_t count, shf_tokens* tokens,
                       shf_error* error) {
    const auto& server = *static_cast<TokenServer*>(ctx);
    try {
        RequestQueue::Answered made;
        const int32_t code = server.queue->tokenize({texts, count}, made, *error);
        if (code == SHF_OK)
            sink_of(tokens)->add(made.tokens.data(), made.counts.data(), made.counts.size());
        return code;
    } catch (const Error& fault) {  // which the sink keeps
        return fault.code();
    } catch (const std::bad_alloc&) {
        return SHF_E_NOMEM;
    }
}

void release_token_server(void* ctx) {
    const std::unique_ptr<TokenServer> server(static_cast<TokenServer*>(ctx));
    server->queue->tell(server->release);
}

}  // namespace

void set_tokenizer(Options& options, std::shared_ptr<RequestQueue> queue) {
    const shf_tokenizer tokenizer = {.struct_size = sizeof tokenizer,
                                     .tokenize = ask_for_tokens,
                                     .release = release_token_server};
    auto server = std::make_unique<TokenServer>(
        TokenServer{std::move(queue), request_event(SHF_REQUEST_RELEASE)});
    set_tokenizer(options, &tokenizer, server.get());
    (void)server.release();
}

}  // namespace shf
