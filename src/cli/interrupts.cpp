#include "cli/interrupts.h"

#include <pthread.h>
#include <unistd.h>
#include <csignal>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

namespace cli {

namespace {

std::atomic<int> received = 0;
std::atomic<bool> ending = false;

struct Handles {
    std::mutex mutex;
    std::map<void*, void (*)(void*)> cancels;
};

Handles& handles() {
    static Handles all;
    return all;
}

sigset_t waited_for() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);  // of ~Interrupts
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction now = {};
        if (::sigaction(signal, nullptr, &now) != 0 || now.sa_handler != SIG_IGN)
            sigaddset(&set, signal);
    }
    return set;
}

void wait_for_signals(sigset_t set) {
    for (;;) {
        int signal = 0;
        if (sigwait(&set, &signal) != 0) return;
        if (signal == SIGUSR2 && ending) return;
        if (signal == SIGUSR2) continue;
        if (received.exchange(signal) != 0) ::_exit(128 + signal);
        const std::lock_guard lock(handles().mutex);
        for (const auto& [handle, cancel] : handles().cancels) cancel(handle);
    }
}

std::thread waiter;

}  // namespace

Interrupts::Interrupts() {
    const sigset_t set = waited_for();
    pthread_sigmask(SIG_BLOCK, &set, &mask_before_);
    pipe_before_ = std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is the error of a write
    ending = false;
    waiter = std::thread(wait_for_signals, set);
}

Interrupts::~Interrupts() {
    ending = true;
    pthread_kill(waiter.native_handle(), SIGUSR2);
    waiter.join();
    if (pipe_before_ != SIG_ERR) std::signal(SIGPIPE, pipe_before_);
    pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

void Interrupts::raise() const {
    const int signal = received.load();
    if (signal == 0) return;
    std::signal(signal, SIG_DFL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    std::raise(signal);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

bool interrupted() {
    return received.load(std::memory_order_relaxed) != 0;
}

Cancellable::Cancellable(void* handle, void (*cancel)(void*)) : handle_(handle) {
    const std::lock_guard lock(handles().mutex);
    handles().cancels[handle] = cancel;
    if (interrupted()) cancel(handle);
}

Cancellable::Cancellable(shf_stream* stream)
    : Cancellable(stream,
                  [](void* handle) { shf_stream_cancel(static_cast<shf_stream*>(handle)); }) {}
Cancellable::Cancellable(shf_members* members)
    : Cancellable(members,
                  [](void* handle) { shf_members_cancel(static_cast<shf_members*>(handle)); }) {}
Cancellable::Cancellable(shf_writer* writer)
    : Cancellable(writer,
                  [](void* handle) { shf_writer_cancel(static_cast<shf_writer*>(handle)); }) {}

Cancellable::~Cancellable() {
    const std::lock_guard lock(handles().mutex);
    handles().cancels.erase(handle_);
}

}  // namespace cli
