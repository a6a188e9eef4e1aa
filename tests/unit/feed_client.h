// Servers of a feed inside the test's process.
#pragma once

#include "temp_shards.h"

#include <gtest/gtest.h>
#include <shardfeed.h>

#include <string>
#include <thread>
#include <vector>

namespace shf::test {

class Feed {
  public:
    explicit Feed(const std::string& url, const Settings& settings = {},
                  const std::string& address = "tcp://127.0.0.1:0") {
        shf_options* options = shf_options_new();
        shf_error error = {};
        for (const auto& [name, value] : settings)
            EXPECT_EQ(shf_options_set(options, name.c_str(), value.c_str(), &error), SHF_OK)
                << error.message;
        const char* const urls[] = {url.c_str()};
        EXPECT_EQ(shf_feed_open(&feed_, urls, 1, address.c_str(), options, &error), SHF_OK)
            << error.message;
        shf_options_free(options);
        thread_ = std::thread([this] {
            shf_error failed = {};
            EXPECT_EQ(shf_feed_run(feed_, &failed), SHF_OK) << failed.message;
        });
    }
    ~Feed() { end(shf_feed_stop); }
    Feed(const Feed&) = delete;
    Feed& operator=(const Feed&) = delete;

    void stop() { end(shf_feed_stop); }
    void drain() { end(shf_feed_drain); }
    [[nodiscard]] std::string url() const { return shf_feed_address(feed_); }
    [[nodiscard]] uint64_t count(int32_t what) const { return shf_feed_count(feed_, what); }

  private:
    void end(void (*how)(shf_feed*)) {
        if (!thread_.joinable()) return;
        how(feed_);
        thread_.join();
        shf_feed_close(feed_);
        feed_ = nullptr;
    }

    shf_feed* feed_ = nullptr;
    std::thread thread_;
};

}  // namespace shf::test
