#include "core/cancel.h"

#include "core/error.h"
#include "core/opening.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

namespace shf {

Cancel::~Cancel() {
    if (const int fd = fd_.load(); fd >= 0) ::close(fd);
}

void Cancel::request() noexcept {
    requested_.store(true, std::memory_order_seq_cst);
    if (const int fd = fd_.load(std::memory_order_seq_cst); fd >= 0) {
        // A full counter or a closed descriptor cannot happen here: one write per cancel.
        const eventfd_t one = 1;
        (void)!::write(fd, &one, sizeof one);
    }
}

void Cancel::check() const {
    if (requested()) throw Error(SHF_E_CANCELLED, "cancelled by the program");
    Opening::check();
}

int Cancel::fd() const {
    if (Opening::active()) return -1;
    if (const int fd = fd_.load(std::memory_order_acquire); fd >= 0) return fd;
    int made = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (made >= 0 && made <= STDERR_FILENO) {
        // The program closed a standard stream; what is printed there must not end up here.
        const int low = std::exchange(made, ::fcntl(made, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
        ::close(low);
    }
    if (made < 0) return -1;
    int none = -1;
    if (!fd_.compare_exchange_strong(none, made, std::memory_order_seq_cst)) {
        ::close(made);
        return none;
    }
    // A request between the check of a waiter and the exchange above did not see the descriptor.
    if (requested()) {
        const eventfd_t one = 1;
        (void)!::write(made, &one, sizeof one);
    }
    return made;
}

}  // namespace shf
