// What the library asks a program that answers on threads and at times of its own (shf_requests):
// sources, and tokens of texts.
#pragma once

#include "core/fork.h"

#include <shardfeed.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

struct Options;

// What waits for the program to take it. Made ahead where there must be room for it.
struct RequestEvent {
    shf_request request{};
    std::string text;
    std::string key;
    shf_error error{};
    std::vector<shf_text> texts;  // in `text`
};
using RequestEvents = std::list<RequestEvent>;
// One of them.
RequestEvents request_event(int32_t kind);

// Any number of threads ask, take and answer. In a forked child asking fails.
class RequestQueue : public std::enable_shared_from_this<RequestQueue> {
  public:
    RequestQueue(shf_wake_fn wake, void* ctx) : wake_(wake), ctx_(ctx) {}
    RequestQueue(const RequestQueue&) = delete;
    RequestQueue& operator=(const RequestQueue&) = delete;

    // Serves the URLs of `scheme`. Throws Error(USAGE).
    void serve(Options& options, std::string_view scheme);

    // ---- The program ----
    // False when nothing is asked. The texts of *out are valid until the next call.
    bool take(shf_request* out);
    // False when nobody waits for this answer any more.
    bool answer(uint64_t id, const shf_answer& answer);
    // Fails what is asked, now and while it is on.
    void cancel(bool on);
    [[nodiscard]] bool is_cancelled() const;
    // Cancels, which cancel(false) does not undo. The program is not woken any more when this has
    // returned.
    void close();
    // Calls `function` on a thread of its own. Throws Error(LIMIT, NOMEM).
    void call(shf_any_fn function, std::span<const uint64_t> arguments, uint64_t id);

    // ---- The library ----
    struct Object {
        uint64_t number = 0;
        uint64_t size = 0;
        std::string version;
        RequestEvents closing;  // one
    };
    // These return a code, and write `error` where that is one of an error.
    int32_t open(const char* url, Object& object, uint32_t& flags, shf_error& error);
    int64_t read(const Object& object, uint64_t offset, std::span<uint8_t> out, shf_error& error);
    // Tokens of texts one after another, and how many each has.
    struct Answered {
        std::vector<int32_t> tokens;
        std::vector<uint64_t> counts;
    };
    int32_t tokenize(std::span<const shf_text> texts, Answered& made, shf_error& error);
    // One event, which wants no answer.
    void tell(RequestEvents& one) noexcept;

  private:
    struct Asked {
        Object* object = nullptr;  // of OPEN
        uint32_t* flags = nullptr;
        Answered* made = nullptr;  // of TOKENIZE
        size_t texts = 0;          // likewise
        std::span<uint8_t> out{};  // of READ
        shf_error& error;
        int64_t result = 0;
        bool over = false;
        std::condition_variable changed{};
    };

    int64_t ask(RequestEvents& one, Asked& asked);
    static void fail(Asked& asked, int32_t code, int32_t os_error, const char* text);
    static void fill(Asked& asked, const shf_answer& answer);
    static void fill_tokens(Asked& asked, const shf_answer& answer);
    void fail_all();
    void wake() const;

    const uint64_t generation_ = fork_generation();
    mutable std::mutex mutex_;
    shf_wake_fn wake_;
    void* const ctx_;
    uint64_t last_id_ = 0;
    bool cancelled_ = false;
    bool closed_ = false;
    RequestEvents events_;
    RequestEvents taken_;  // at most one: whose texts the program has
    std::map<uint64_t, Asked*> asked_;
};

}  // namespace shf
