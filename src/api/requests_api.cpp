// Sources and tokens by requests: shf_requests_*, shf_options_set_requests,
// shf_options_set_tokenizer_requests.
#include "api/handles.h"
#include "batch/tokens.h"
#include "io/request_queue.h"

#include <new>

using shf::Error;
using shf::guard;

static_assert(sizeof(shf_request) == 80 && sizeof(shf_answer) == 64);

struct shf_requests {
    std::shared_ptr<shf::RequestQueue> queue;
};

extern "C" {

shf_requests* shf_requests_new(shf_wake_fn wake, void* ctx) {
    try {
        return new shf_requests{std::make_shared<shf::RequestQueue>(wake, ctx)};
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

void shf_requests_free(shf_requests* requests) {
    if (!requests) return;
    requests->queue->close();
    delete requests;
}

int32_t shf_options_set_requests(shf_options* options, const char* scheme, shf_requests* requests,
                                 shf_error* error) {
    return guard(error, [&] {
        if (!options || !scheme || !requests)
            throw Error(SHF_E_USAGE, "shf_options_set_requests: a NULL argument");
        requests->queue->serve(options->values, scheme);
        return SHF_OK;
    });
}

int32_t shf_options_set_tokenizer_requests(shf_options* options, shf_requests* requests,
                                           shf_error* error) {
    return guard(error, [&] {
        if (!options || !requests)
            throw Error(SHF_E_USAGE, "shf_options_set_tokenizer_requests: a NULL argument");
        shf::set_tokenizer(options->values, requests->queue);
        return SHF_OK;
    });
}

int32_t shf_requests_take(shf_requests* requests, shf_request* out) {
    if (!requests || !out || out->struct_size < sizeof(shf_request)) return SHF_E_USAGE;
    return requests->queue->take(out) ? SHF_OK : SHF_END;
}

int32_t shf_requests_answer(shf_requests* requests, uint64_t id, const shf_answer* answer) {
    if (!requests || !answer || answer->struct_size < sizeof(shf_answer)) return SHF_E_USAGE;
    return requests->queue->answer(id, *answer) ? SHF_OK : SHF_E_NOT_FOUND;
}

void shf_requests_cancel(shf_requests* requests, int32_t on) {
    if (requests) requests->queue->cancel(on != 0);
}

int32_t shf_requests_cancelled(void* requests) {
    return requests && static_cast<shf_requests*>(requests)->queue->is_cancelled() ? 1 : 0;
}

void shf_requests_log(void* requests, int32_t level, const char* message) {
    try {
        shf::RequestEvents one = shf::request_event(SHF_REQUEST_LOG);
        one.front().request.result = level;
        one.front().text = message;
        static_cast<shf_requests*>(requests)->queue->tell(one);
    } catch (const std::bad_alloc&) {  // the message is lost
    }
}

void shf_requests_skip(void* requests, const shf_skip* skip) {
    try {
        shf::RequestEvents one = shf::request_event(SHF_REQUEST_SKIP);
        one.front().request.result = skip->whole_shard;
        one.front().text.assign(reinterpret_cast<const char*>(skip->url.data), skip->url.size);
        one.front().key.assign(reinterpret_cast<const char*>(skip->key.data), skip->key.size);
        one.front().error = *skip->error;
        static_cast<shf_requests*>(requests)->queue->tell(one);
    } catch (const std::bad_alloc&) {
    }
}

int32_t shf_requests_call(shf_requests* requests, uint64_t id, shf_any_fn function,
                          const uint64_t* arguments, size_t count, shf_error* error) {
    return guard(error, [&] {
        if (!requests || (!arguments && count > 0))
            throw Error(SHF_E_USAGE, "shf_requests_call: a NULL argument");
        requests->queue->call(function, {arguments, count}, id);
        return SHF_OK;
    });
}
}
