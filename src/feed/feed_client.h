// The consumer's side of a feed: its connections to the servers, on a thread of its own, and which
// of them reads which lane. When a server dies, is silent or is drained, others continue its lanes
// from where the last message of each has left it.
#pragma once

#include "core/options.h"
#include "core/threads.h"
#include "feed/fed_lane.h"
#include "feed/feed_block.h"
#include "feed/feed_frames.h"
#include "feed/feed_socket.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace shf {

class FeedClient final : public LaneProvider {
  public:
    // Connects to servers at these addresses, "feed://HOST:PORT", and returns when one of them has
    // said what it feeds. Throws Error.
    FeedClient(std::vector<std::string> addresses, const Options& options);
    ~FeedClient() override { join(); }
    FeedClient(const FeedClient&) = delete;
    FeedClient& operator=(const FeedClient&) = delete;

    [[nodiscard]] const WelcomeFrame& welcome() const { return *welcome_; }

    [[nodiscard]] std::optional<std::vector<uint32_t>> counts() const override {
        return welcome_->counts;
    }
    std::unique_ptr<SampleLane> lane(LaneContext& context, const LaneState& from) override;
    void start(LaneContext& context, std::span<const std::unique_ptr<SampleLane>> lanes) override;
    void repeat() noexcept override { repeats_ = true; }
    [[nodiscard]] bool started() const override { return started_; }
    void join() noexcept override;

  private:
    static constexpr size_t nobody = SIZE_MAX;
    struct Server {
        enum class State : uint8_t { connecting, ready, draining };
        Server() = default;
        Server(Server&&) = default;
        ~Server() { disconnect(); }
        void disconnect() noexcept {
            if (socket) socket->unwatch();
            losses.reset();
            socket.reset();
        }
        std::string address;
        std::unique_ptr<FeedSocket> socket, losses;
        State state = State::connecting;
        Clock::time_point heard{}, asked{};  // when it was heard of, and asked, last
    };
    struct Lane {
        FedLane* lane = nullptr;
        size_t server = nobody;
        uint64_t opening = 0;   // the latest one
        uint64_t received = 0;  // events
        uint64_t granted = 0;   // events that may come, with those that were received
        bool over = false;      // it has no more
        // Since when nothing of what may come has come, and how long that may be so.
        Clock::time_point silent_since{};
        std::chrono::nanoseconds patience{};
        // Servers whose copy of a shard is not the one that the lane was reading, what the first of
        // them said, and since when no other server is there. Until something comes.
        std::vector<size_t> refused_by{};
        std::optional<Fault> refusal{};
        std::optional<Clock::time_point> waits_since{};

        [[nodiscard]] bool is_refused_by(size_t number) const {
            return std::find(refused_by.begin(), refused_by.end(), number) != refused_by.end();
        }
    };

    void run() noexcept;
    void step();
    void connect(Server& server);
    void greet(Server& server);
    void lose(size_t number);
    void leave_servers() noexcept;
    void receive(size_t number);
    void receive_welcome(size_t number, std::span<const uint8_t> frame);
    void receive_of_lane(size_t number, FrameType type, FeedMessage& message);
    void deliver(Lane& lane, FedLane::Event event);
    void refuse(Lane& lane, Fault fault);
    void wait_for_another(Lane& lane);
    void take_lanes();
    Pool& pool_of(const LaneContext& context);
    void assign();
    void rebalance();
    void move_silent_lanes();
    void open(Lane& lane, size_t server);
    void close(Lane& lane);
    void give_credit();
    [[nodiscard]] uint64_t may_come(const Lane& lane) const;
    void check_alive();
    void fail(const Fault& fault);
    [[nodiscard]] size_t load_of(size_t server) const;
    [[nodiscard]] std::optional<size_t> freest_server(const Lane* for_lane = nullptr) const;
    [[nodiscard]] Lane* lane_of(size_t server, uint64_t opening);

    const Options options_;
    const std::string options_text_;
    CurveKeys keys_;
    FeedBell bell_;
    FeedContext context_;
    std::vector<Server> servers_;
    std::vector<std::thread> threads_;
    std::atomic<bool> stopping_{false};
    bool started_ = false;
    std::atomic<bool> repeats_{false};

    // Between the thread that opens and ours.
    std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<WelcomeFrame> welcome_;  // does not change
    std::optional<Fault> fault_;           // why there is none
    std::vector<Lane> new_lanes_;
    LaneContext* new_context_ = nullptr;

    // Of our thread.
    LaneContext* lane_context_ = nullptr;
    struct PoolDrop {
        void operator()(Pool* pool) const noexcept {
            pool->close();
            pool->drop();
        }
    };
    std::unique_ptr<Pool, PoolDrop> pool_;  // NULL: that of the stream
    std::optional<FeedBlockReader> reader_;
    std::vector<Lane> lanes_;
    uint64_t openings_ = 0;
    uint64_t block_bytes_ = 0, window_ = 0;
    unsigned damaged_ = 0;           // messages
    Clock::time_point alone_since_;  // without a server
};

}  // namespace shf
