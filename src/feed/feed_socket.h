// Sockets of ZeroMQ, and the messages that they carry. A message is one or two parts: what it says
// (feed_frames.h), and the payload of a block.
#pragma once

#include "core/memory.h"
#include "feed/libzmq.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

// Bytes that were given to ZeroMQ, and that it has not sent or dropped yet.
using UnsentBytes = std::atomic<uint64_t>;

// One part of a message. Movable.
class FeedPart {
  public:
    FeedPart();
    // A copy. Throws std::bad_alloc.
    explicit FeedPart(std::span<const uint8_t> bytes);
    // The first `size` bytes of it, which stay there until ZeroMQ lets go of them. Throws
    // std::bad_alloc.
    FeedPart(StorageRef bytes, size_t size);
    // The same bytes, which count as unsent until ZeroMQ lets go of them. Throws std::bad_alloc.
    FeedPart(FeedPart part, std::shared_ptr<UnsentBytes> unsent);
    ~FeedPart();
    FeedPart(FeedPart&& other) noexcept;
    FeedPart& operator=(FeedPart&& other) noexcept;

    [[nodiscard]] std::span<const uint8_t> bytes() const;
    [[nodiscard]] zmq_msg_t* raw() { return message_.get(); }

  private:
    std::unique_ptr<zmq_msg_t> message_;
};

using FeedMessage = std::vector<FeedPart>;

// A context of ZeroMQ; its sockets must be gone before it.
class FeedContext {
  public:
    FeedContext();  // throws Error
    ~FeedContext();
    FeedContext(const FeedContext&) = delete;
    FeedContext& operator=(const FeedContext&) = delete;
    [[nodiscard]] void* raw() const { return context_; }

  private:
    void* context_;
};

// One thread at a time.
class FeedSocket {
  public:
    // `type` as ZMQ_ROUTER. Throws Error.
    FeedSocket(FeedContext& context, int type);
    ~FeedSocket();
    FeedSocket(const FeedSocket&) = delete;
    FeedSocket& operator=(const FeedSocket&) = delete;

    // All throw Error.
    void set(int option, int value);
    void set(int option, int64_t value);
    void set(int option, std::string_view value);
    // `address` is for messages too.
    void bind(const std::string& address);
    void connect(const std::string& address);
    // Where it is bound, with the port that the system chose.
    [[nodiscard]] std::string endpoint() const;

    // A socket that has a message for each of these events of this one (ZMQ_EVENT_*). Before it
    // goes, unwatch() is called: ZeroMQ would wait for it to read. Throws Error.
    [[nodiscard]] std::unique_ptr<FeedSocket> watch(FeedContext& context, int events);
    void unwatch() noexcept;

    // The next message; false: there is none now.
    bool receive(FeedMessage& out);
    // Sends it, without waiting. False: there is no room, or nobody to send it to.
    bool send(FeedMessage&& message);

    [[nodiscard]] void* raw() const { return socket_; }

  private:
    void set_raw(int option, const void* value, size_t size);

    void* socket_;
};

// Wakes a thread that polls on sockets. Any thread, and signal handlers.
class FeedBell {
  public:
    FeedBell();  // throws Error
    ~FeedBell();
    FeedBell(const FeedBell&) = delete;
    FeedBell& operator=(const FeedBell&) = delete;
    void ring() noexcept;
    void silence() noexcept;
    [[nodiscard]] int fd() const { return fd_; }

  private:
    int fd_;
};

// Waits for messages on some sockets, or the bell, at most so many milliseconds.
void wait_for_messages(std::span<FeedSocket* const> sockets, FeedBell& bell, long milliseconds);

// Both ends of a connection with CURVE (RFC 26 of ZeroMQ) have a pair of keys, in Z85.
struct CurveKeys {
    std::string public_key, secret_key;
    static CurveKeys make();                                  // throws Error
    static std::string public_of(const std::string& secret);  // throws Error(USAGE)
};

}  // namespace shf
