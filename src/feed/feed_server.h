// A server of a feed: answers its consumers on one thread, while each lane that they have opened is
// read on its own (lane_feeder.h).
#pragma once

#include "core/options.h"
#include "core/recycler.h"
#include "feed/feed_frames.h"
#include "feed/feed_socket.h"
#include "feed/lane_feeder.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace shf {

class FeedServer {
  public:
    // Feeds the samples of these shards or, with the option batch, rows that are decoded as the
    // option decode says. Binds to `address`, "tcp://HOST:PORT"; port 0 is any. Opens no shard.
    // Throws Error.
    FeedServer(std::span<const char* const> urls, const Options& options,
               const std::string& address);
    ~FeedServer();
    FeedServer(const FeedServer&) = delete;
    FeedServer& operator=(const FeedServer&) = delete;

    // For consumers: "feed://HOST:PORT".
    [[nodiscard]] const std::string& address() const { return address_; }
    // Serves until drain() or stop() was called, and then until its consumers have taken their
    // lanes elsewhere, some seconds at most. Once. Throws Error.
    void run();
    // Any thread, and signal handlers. stop() does not wait for the consumers.
    void drain() noexcept;
    void stop() noexcept;

    // Whether run() takes consumers. Any thread.
    [[nodiscard]] bool serves() const { return running_ && !draining_ && !stopping_; }
    // Any thread.
    [[nodiscard]] const FeedCounts& counts() const { return work_; }

  private:
    struct Consumer {
        Options options;
        Clock::time_point heard{};
        std::map<uint64_t, std::unique_ptr<LaneFeeder>> lanes;  // by opening
        // Sent to it, and still in this process.
        std::shared_ptr<UnsentBytes> unsent = std::make_shared<UnsentBytes>(0);
        std::map<uint64_t, uint64_t> credit;  // by opening: what it gives, until it is passed on
    };
    using Name = std::string;  // that ZeroMQ gives a connection
    using Consumers = std::map<Name, Consumer>;

    void step();
    void receive(FeedMessage message);
    void receive_from(Consumer& consumer, const Name& name, std::span<const uint8_t> frame,
                      FrameType type);
    void greet(const Name& name, std::span<const uint8_t> frame);
    void open(Consumer& consumer, const Name& name, const OpenFrame& open);
    void close(Consumer& consumer, uint64_t opening);
    void send(const Name& name, std::vector<uint8_t> frame);
    void post(const Name& name, FeedMessage message) noexcept;
    void send_posted();
    void give_credit();
    void forget(const Name& name);
    Consumers::iterator forget(Consumers::iterator consumer);
    void forget_silent();
    [[nodiscard]] uint64_t lanes_in_all() const;
    void count();
    [[nodiscard]] WelcomeFrame welcome(const Options& options);

    const std::vector<std::string> urls_;
    std::vector<const char*> url_pointers_;
    const Options options_;
    const bool rows_;
    const std::unique_ptr<Recycler, Recycler::Drop> payloads_;
    std::vector<std::string> shards_;  // redacted
    uint64_t shards_hash_ = 0;
    std::map<std::string, std::vector<uint32_t>> counts_;  // with even: by the consumer's options
    FeedBell bell_;
    FeedContext context_;
    FeedSocket socket_;
    std::string address_;
    std::atomic<bool> running_{false}, draining_{false}, stopping_{false};
    FeedCounts work_;

    std::mutex mutex_;
    std::deque<std::pair<Name, FeedMessage>> posted_;

    Consumers consumers_;
    std::vector<std::unique_ptr<LaneFeeder>> closing_;  // that have not ended yet
};

}  // namespace shf
