#include "io/request_queue.h"

#include "core/error.h"
#include "core/threads.h"
#include "io/callback_source.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <new>
#include <thread>
#include <utility>
#include <vector>

namespace shf {

RequestEvents request_event(int32_t kind) {
    RequestEvents one(1);
    one.front().request.struct_size = sizeof(shf_request);
    one.front().request.kind = kind;
    return one;
}

namespace {

constexpr size_t most_arguments = 8;

// The functions of shf_source. What they are called with is one of these.
struct Server {
    std::shared_ptr<RequestQueue> queue;
    RequestEvents release;  // one
};
struct ServedObject {
    RequestQueue& queue;
    RequestQueue::Object object;
};

int32_t open_object(void* ctx, const char* url, void** object, uint32_t* flags, shf_error* error) {
    const auto& server = *static_cast<Server*>(ctx);
    try {
        auto opened = std::make_unique<ServedObject>(ServedObject{*server.queue, {}});
        opened->object.closing = request_event(SHF_REQUEST_CLOSE);
        const int32_t code = server.queue->open(url, opened->object, *flags, *error);
        if (code == SHF_OK) *object = opened.release();
        return code;
    } catch (const std::bad_alloc&) {
        return SHF_E_NOMEM;
    }
}

int32_t size_of(void* object, uint64_t* size, shf_error* /*error*/) {
    *size = static_cast<ServedObject*>(object)->object.size;
    return SHF_OK;
}

int32_t version_of(void* object, char* text, size_t room, shf_error* /*error*/) {
    const std::string& version = static_cast<ServedObject*>(object)->object.version;
    text[version.copy(text, room - 1)] = '\0';
    return SHF_OK;
}

int64_t read_object(void* object, uint64_t offset, uint8_t* out, size_t size, shf_error* error) {
    auto& served = *static_cast<ServedObject*>(object);
    try {
        return served.queue.read(served.object, offset, {out, size}, *error);
    } catch (const std::bad_alloc&) {
        return SHF_E_NOMEM;
    }
}

void close_object(void* object) {
    const std::unique_ptr<ServedObject> served(static_cast<ServedObject*>(object));
    served->object.closing.front().request.object = served->object.number;
    served->queue.tell(served->object.closing);
}

void release_server(void* ctx) {
    const std::unique_ptr<Server> server(static_cast<Server*>(ctx));
    server->queue->tell(server->release);
}

// Any function of the library: integers and pointers are passed alike, and too many do no harm, in
// the calling conventions of x86-64 and arm64.
using Function = int32_t (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                             uint64_t);

#ifdef __clang__
__attribute__((no_sanitize("function")))
#endif
int32_t
run(shf_any_fn function, const std::array<uint64_t, most_arguments>& with) {
    return reinterpret_cast<Function>(function)(with[0], with[1], with[2], with[3], with[4],
                                                with[5], with[6], with[7]);
}

}  // namespace

void RequestQueue::serve(Options& options, std::string_view scheme) {
    const shf_source source = {.struct_size = sizeof source,
                               .open = open_object,
                               .size = size_of,
                               .version = version_of,
                               .read_at = read_object,
                               .close = close_object,
                               .release = release_server};
    auto server =
        std::make_unique<Server>(Server{shared_from_this(), request_event(SHF_REQUEST_RELEASE)});
    set_source(options, scheme, &source, server.get());
    (void)server.release();
}

// ---- The program --------------------------------------------------------------------------------

bool RequestQueue::take(shf_request* out) {
    const std::lock_guard lock(mutex_);
    taken_.clear();
    if (events_.empty()) return false;
    taken_.splice(taken_.begin(), events_, events_.begin());
    RequestEvent& taken = taken_.front();
    taken.request.text = taken.text.c_str();
    taken.request.key = taken.key.c_str();
    taken.request.error = &taken.error;
    taken.request.texts = taken.texts.data();
    std::memcpy(out, &taken.request, sizeof taken.request);
    return true;
}

bool RequestQueue::answer(uint64_t id, const shf_answer& answer) {
    const std::lock_guard lock(mutex_);
    const auto at = asked_.find(id);
    if (at == asked_.end()) return false;
    Asked& asked = *at->second;
    asked_.erase(at);
    if (answer.code == SHF_OK)
        fill(asked, answer);
    else
        fail(asked, answer.code, answer.os_error, answer.text);
    asked.changed.notify_one();
    return true;
}

void RequestQueue::fill(Asked& asked, const shf_answer& answer) {
    asked.over = true;
    asked.result = SHF_OK;
    try {
        if (asked.object) {
            if (answer.text) asked.object->version = answer.text;
            asked.object->number = answer.object;
            asked.object->size = answer.size;
            *asked.flags = answer.flags;
            return;
        }
        if (asked.made) return fill_tokens(asked, answer);
    } catch (const std::exception&) {  // more than memory has, or a vector
        return fail(asked, SHF_E_NOMEM, 0, nullptr);
    }
    if (answer.size > asked.out.size())
        return fail(asked, SHF_E_USAGE, 0, "the answer has more bytes than were asked for");
    if (answer.size > 0) std::memcpy(asked.out.data(), answer.data, answer.size);
    asked.result = static_cast<int64_t>(answer.size);
}

void RequestQueue::fill_tokens(Asked& asked, const shf_answer& answer) {
    uint64_t all = 0;
    for (size_t i = 0; answer.counts && i < asked.texts; ++i)
        if (__builtin_add_overflow(all, answer.counts[i], &all)) all = UINT64_MAX;
    if (!answer.counts || answer.size % sizeof(int32_t) != 0 ||
        all != answer.size / sizeof(int32_t) || (all > 0 && !answer.data))
        return fail(asked, SHF_E_USAGE, 0, "the answer has other tokens than its counts say");
    asked.made->counts.assign(answer.counts, answer.counts + asked.texts);
    asked.made->tokens.resize(static_cast<size_t>(all));
    if (all > 0)
        std::memcpy(asked.made->tokens.data(), answer.data, static_cast<size_t>(answer.size));
}

void RequestQueue::fail(Asked& asked, int32_t code, int32_t os_error, const char* text) {
    asked.over = true;
    asked.result = code;
    asked.error.os_error = os_error;
    if (!text) return;
    // It was zeroed.
    std::memcpy(asked.error.message, text,
                std::min(std::strlen(text), sizeof asked.error.message - 1));
}

void RequestQueue::fail_all() {
    for (const auto& [id, asked] : asked_) {
        fail(*asked, SHF_E_CANCELLED, 0, nullptr);
        asked->changed.notify_one();
    }
    asked_.clear();
    events_.remove_if([](const RequestEvent& one) {
        const int32_t kind = one.request.kind;
        return kind == SHF_REQUEST_OPEN || kind == SHF_REQUEST_READ || kind == SHF_REQUEST_TOKENIZE;
    });
}

void RequestQueue::cancel(bool on) {
    const std::lock_guard lock(mutex_);
    cancelled_ = on;
    if (on) fail_all();
}

bool RequestQueue::is_cancelled() const {
    const std::lock_guard lock(mutex_);
    return cancelled_ || closed_;
}

void RequestQueue::close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    wake_ = nullptr;
    fail_all();
}

void RequestQueue::call(shf_any_fn function, std::span<const uint64_t> arguments, uint64_t id) {
    if (!function || arguments.size() > most_arguments)
        throw Error(SHF_E_USAGE, "shf_requests_call: no function, or more than eight arguments");
    std::array<uint64_t, most_arguments> with{};
    std::copy(arguments.begin(), arguments.end(), with.begin());
    auto done = std::make_shared<RequestEvents>(request_event(SHF_REQUEST_DONE));
    done->front().request.id = id;
    std::vector<std::thread> threads;
    start_thread(threads, "callers", 1, [self = shared_from_this(), function, with, done] {
        done->front().request.result = run(function, with);
        self->tell(*done);
    });
    threads.front().detach();
}

// ---- The library --------------------------------------------------------------------------------

void RequestQueue::wake() const {
    if (wake_) wake_(ctx_);
}

void RequestQueue::tell(RequestEvents& one) noexcept {
    if (generation_ != fork_generation()) return;
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    events_.splice(events_.end(), one);
    wake();
}

int64_t RequestQueue::ask(RequestEvents& one, Asked& asked) {
    constexpr const char* forked =
        "the program answers requests in the process that has opened this; help: open it again";
    if (generation_ != fork_generation()) {
        fail(asked, SHF_E_FORKED, 0, forked);
        return asked.result;
    }
    std::unique_lock lock(mutex_);
    if (cancelled_ || closed_) {
        fail(asked, SHF_E_CANCELLED, 0, nullptr);
        return asked.result;
    }
    const uint64_t id = ++last_id_;
    one.front().request.id = id;
    asked_.emplace(id, &asked);
    events_.splice(events_.end(), one);
    wake();
    asked.changed.wait(lock, [&] { return asked.over; });
    return asked.result;
}

int32_t RequestQueue::open(const char* url, Object& object, uint32_t& flags, shf_error& error) {
    RequestEvents one = request_event(SHF_REQUEST_OPEN);
    one.front().text = url;
    Asked asked{.object = &object, .flags = &flags, .error = error};
    return static_cast<int32_t>(ask(one, asked));
}

int64_t RequestQueue::read(const Object& object, uint64_t offset, std::span<uint8_t> out,
                           shf_error& error) {
    RequestEvents one = request_event(SHF_REQUEST_READ);
    one.front().request.object = object.number;
    one.front().request.offset = offset;
    one.front().request.size = out.size();
    Asked asked{.out = out, .error = error};
    return ask(one, asked);
}

// The program may look at the texts after the call was cancelled: it gets copies.
int32_t RequestQueue::tokenize(std::span<const shf_text> texts, Answered& made, shf_error& error) {
    RequestEvents one = request_event(SHF_REQUEST_TOKENIZE);
    one.front().request.size = texts.size();
    size_t bytes = 0;
    for (const shf_text& text : texts) bytes += text.text.size + text.key.size + text.url.size;
    std::string& copies = one.front().text;
    copies.reserve(bytes);
    const auto copy = [&copies](const shf_bytes& of) -> shf_bytes {
        const size_t at = copies.size();
        if (of.size > 0) copies.append(reinterpret_cast<const char*>(of.data), of.size);
        return {reinterpret_cast<const uint8_t*>(copies.data()) + at, of.size};
    };
    one.front().texts.reserve(texts.size());
    for (const shf_text& text : texts)
        one.front().texts.push_back({copy(text.text), copy(text.key), copy(text.url)});
    Asked asked{.made = &made, .texts = texts.size(), .error = error};
    return static_cast<int32_t>(ask(one, asked));
}

}  // namespace shf
