#include "core/opening.h"

#include "core/error.h"
#include "core/options.h"

#include <string>

namespace shf {

namespace {

// Between two questions. A cancel is to be seen within 100 ms.
constexpr auto pause = std::chrono::milliseconds(50);

}  // namespace

thread_local constinit Opening* Opening::innermost = nullptr;

Opening::Opening(const Options& options, Opens what)
    : outer_(innermost), options_(options), what_(what) {
    if (options.timeout != 0 && (what != Opens::stream || options.interrupt == nullptr))
        deadline_ = Clock::now() + std::chrono::nanoseconds(options.timeout);
    innermost = this;
}

Opening::~Opening() {
    innermost = outer_;
}

void Opening::ask() {
    const auto now = Clock::now();
    if (now >= deadline_) {
        const std::string bound =
            " longer than timeout=" + std::to_string(options_.timeout / 1'000'000) + "ms";
        if (what_ == Opens::nothing)
            throw Error(SHF_E_TIMEOUT, "the call waited" + bound,
                        "call again, or raise the option timeout, 0 for no limit");
        throw Error(SHF_E_TIMEOUT, "opening took" + bound,
                    "raise the option timeout, 0 for no limit, and open it again");
    }
    if (options_.interrupt == nullptr) return;
    // Most calls wait for nothing: the first one that looks at the clock is the first wait.
    if (next_question_ == Clock::time_point()) next_question_ = now + pause;
    if (now < next_question_) return;
    // The function may call this library, and what it opens is not what it was asked about.
    innermost = nullptr;
    const int32_t answer = options_.interrupt(options_.interrupt_ctx);
    innermost = this;
    next_question_ = Clock::now() + pause;
    if (answer != 0)
        throw Error(SHF_E_CANCELLED, "the program's interrupt function ended the call");
}

}  // namespace shf
