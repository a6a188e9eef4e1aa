#include "core/threads.h"

#include "core/error.h"

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace shf {

void start_thread(std::vector<std::thread>& threads, std::string_view what, uint64_t wanted,
                  std::function<void()> run) {
    try {
        const SignalsBlocked blocked;
        threads.emplace_back(std::move(run));
    } catch (const std::system_error& error) {
        const int number = error.code().value();
        Fault fault;
        // EAGAIN is a limit of the system, in most cases.
        fault.code = number == ENOMEM ? SHF_E_NOMEM : SHF_E_LIMIT;
        fault.os_error = number;
        fault.cause = "thread " + std::to_string(threads.size() + 1) + " of " +
                      std::to_string(wanted) + " " + std::string(what) +
                      " could not be started: " + std::generic_category().message(number) + "; " +
                      std::to_string(threads.size()) + " run";
        fault.help =
            "set threads or decode_threads lower, or let the system have more threads (ulimit -u, "
            "pids.max of the container) or memory";
        throw Error(std::move(fault));
    }
}

}  // namespace shf
