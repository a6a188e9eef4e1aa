// Sockets of ZeroMQ by the names that tarp and tensorcom give them: zpull://host:port and the like.
#pragma once

#include "core/cancel.h"
#include "feed/feed_socket.h"
#include "io/descriptor.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shf {

struct Options;

// SCHEME://HOST:PORT and SCHEME+ipc://PATH.
struct MessageAddress {
    int type = 0;          // of the socket, as ZMQ_PULL
    bool binds = false;    // this side waits for the others
    std::string location;  // as ZeroMQ writes it: tcp://host:port

    // Throws Error(USAGE).
    static MessageAddress parse(const std::string& url);
    [[nodiscard]] bool sends() const;
};

// One thread at a time, of the process that made it; in a forked child only the destructor may be
// called, which leaves the socket alone.
class MessageSocket {
  public:
    // `cancel` must outlive it. Throws Error.
    MessageSocket(const MessageAddress& address, const Options& options, const Cancel& cancel);
    // What has not been sent by then is dropped.
    ~MessageSocket();
    MessageSocket(const MessageSocket&) = delete;
    MessageSocket& operator=(const MessageSocket&) = delete;

    // The next message; waits for it. Throws Error: IO (nothing came for pipe_timeout), LIMIT (it
    // has more bytes than the option memory), CANCELLED.
    FeedMessage receive();
    // Whether receive() would not wait.
    [[nodiscard]] bool ready();
    // Sends a copy. Waits while receivers have no room for it, or more than `memory` waits for
    // them; a publisher also for the first subscriber. Throws Error: IO (nobody took anything for
    // pipe_timeout, or a receiver of zpush or zrpush went away), CANCELLED.
    void send(std::span<const uint8_t> message);
    // Returns when nothing is left in this process. To be called before the end mark: it goes to
    // one receiver, which may leave while the others still read. Throws Error as send().
    void drain();
    // Closes the socket, and returns when the systems of receivers have what was sent; over ipc,
    // when they have read it. Throws Error as send().
    void finish();

  private:
    struct Sockets;
    class Silence;

    bool wait(short events, long milliseconds);
    [[nodiscard]] bool has_subscriber();
    void take_event(const FeedMessage& event);
    void note_connections();
    void check_receivers();
    void wait_for_room(Silence& silence);
    void wait_for_readers(Silence& silence);
    void close(Silence& silence);
    [[noreturn]] void refuse_loss() const;
    [[nodiscard]] Error silent(const char* what) const;

    const MessageAddress address_;
    const uint64_t patience_;  // nanoseconds of silence; 0: no limit
    const uint64_t memory_;    // bytes
    const Cancel& cancel_;
    const uint64_t generation_;  // of forks
    std::unique_ptr<Sockets> sockets_;
    std::shared_ptr<UnsentBytes> unsent_ = std::make_shared<UnsentBytes>(0);
    bool subscribed_ = false;
    bool sent_ = false;               // something
    std::vector<int> connections_;    // of a sender, as ZeroMQ has them
    std::vector<Descriptor> unread_;  // duplicates of them
    bool refused_ = false;            // the last event: what connected was no receiver
    bool lost_ = false;               // a receiver went away
};

}  // namespace shf
