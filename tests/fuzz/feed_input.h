// The inputs of feed_fuzz: a message of a feed, with its size in front (32 bits), and behind it the
// payload that blocks have. And the messages of a lane that a server reads.
#pragma once

#include "core/little_endian.h"
#include "feed/lane_feeder.h"
#include "io/urls.h"
#include "state_shards.h"
#include "stream/shard_run.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace shf::test {

struct FeedInput {
    std::vector<uint8_t> frame, payload;

    static FeedInput of(std::span<const uint8_t> bytes) {
        if (bytes.size() < 4) return {};
        const size_t size = std::min<size_t>(shf::le32(bytes.data()), bytes.size() - 4);
        const auto frame = bytes.subspan(4, size), payload = bytes.subspan(4 + size);
        return {{frame.begin(), frame.end()}, {payload.begin(), payload.end()}};
    }
    [[nodiscard]] std::vector<uint8_t> bytes() const {
        std::vector<uint8_t> all;
        for (unsigned i = 0; i < 4; ++i) all.push_back(static_cast<uint8_t>(frame.size() >> 8 * i));
        all.insert(all.end(), frame.begin(), frame.end());
        all.insert(all.end(), payload.begin(), payload.end());
        return all;
    }
};

// A server's side of one lane of the shards.
class FedMessages {
  public:
    FedMessages(const StateShards& shards, const Options& options, bool rows, const OpenFrame& open)
        : urls_(shards.urls()),
          feeder_(
              list_of(urls_), options, rows, open,
              {[this](FeedMessage message) { post(std::move(message)); }, counts_, *payloads_}) {}

    // The next message; nothing when the lane has none. Aborts when neither comes.
    std::optional<FeedInput> next() {
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        std::unique_lock lock(mutex_);
        for (bool over = false; messages_.empty(); over = feeder_.ended()) {
            if (over) return std::nullopt;
            if (std::chrono::steady_clock::now() > until) std::abort();
            posted_.wait_for(lock, std::chrono::milliseconds(1));
        }
        FeedInput first = std::move(messages_.front());
        messages_.pop_front();
        return first;
    }

  private:
    static LaneFeeder::Shards list_of(std::span<const char* const> urls) {
        const LaneContext context(urls, Options{});
        return {urls, context.shards.size(), hash_of_names(context.shards)};
    }
    void post(FeedMessage message) {
        const auto part = [&](size_t number) {
            if (number >= message.size()) return std::vector<uint8_t>();
            const std::span<const uint8_t> bytes = message[number].bytes();
            return std::vector<uint8_t>(bytes.begin(), bytes.end());
        };
        const std::lock_guard lock(mutex_);
        messages_.push_back({part(0), part(1)});
        posted_.notify_all();
    }

    const std::vector<const char*> urls_;
    FeedCounts counts_;
    const std::unique_ptr<Recycler, Recycler::Drop> payloads_{Recycler::make(0)};
    std::mutex mutex_;
    std::condition_variable posted_;
    std::deque<FeedInput> messages_;
    LaneFeeder feeder_;  // the last one: it posts
};

}  // namespace shf::test
