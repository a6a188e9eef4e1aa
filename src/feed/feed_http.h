// Answers GET of two paths over HTTP, for monitors of a feed: /metrics and /healthz. Everything of
// HTTP is libmicrohttpd's; its loop runs on a thread of ours, beside those of the feed.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

struct MHD_Connection;
struct MHD_Daemon;

namespace shf {

class FeedHttp {
  public:
    // Both are called on the thread of HTTP, until the destructor has returned.
    struct Answers {
        std::function<std::string()> metrics;  // Prometheus, text format 0.0.4
        std::function<bool()> healthy;
    };

    // Listens at "HOST:PORT", or at loopback for ":PORT", and answers from now on. Throws Error:
    // USAGE, IO, UNSUPPORTED, LIMIT, NOMEM.
    FeedHttp(const std::string& address, Answers answers);
    ~FeedHttp();
    FeedHttp(const FeedHttp&) = delete;
    FeedHttp& operator=(const FeedHttp&) = delete;

    // "http://HOST:PORT"
    [[nodiscard]] const std::string& address() const { return address_; }

  private:
    // The calls that libmicrohttpd makes.
    friend struct FeedHttpCalls;

    void run();
    void end_old_connections();
    // Answers one request: MHD_YES, or MHD_NO for an end of its connection.
    int answer(MHD_Connection* connection, const std::string& path, const std::string& method);

    const Answers answers_;
    std::string address_;
    MHD_Daemon* daemon_ = nullptr;
    std::atomic<bool> stopping_{false};
    // Of the thread: by descriptor, when it connected.
    std::map<int, std::chrono::steady_clock::time_point> connections_;
    std::vector<std::thread> threads_;
};

}  // namespace shf
