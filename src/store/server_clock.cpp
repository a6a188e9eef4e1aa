#include "store/server_clock.h"

#include "core/per_process.h"
#include "core/times.h"
#include "http/http_answer.h"
#include "http/libcurl.h"

#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>

namespace shf {

namespace {

struct Clocks {
    std::mutex mutex;
    std::map<std::string, int64_t> ahead;  // seconds, by server
};
constinit PerProcess<Clocks> clocks;

}  // namespace

int64_t server_time(const std::string& server) {
    Clocks& all = clocks.get();
    const std::lock_guard lock(all.mutex);
    const auto at = all.ahead.find(server);
    return seconds_now() + (at == all.ahead.end() ? 0 : at->second);
}

bool learn_server_time(const std::string& server, const std::string& sent, const HttpAnswer& answer,
                       int64_t slack) {
    const std::string date(answer.header("date"));
    const time_t there = date.empty() ? -1 : libcurl().getdate(date.c_str(), nullptr);
    const time_t signed_for = libcurl().getdate(sent.c_str(), nullptr);
    // What was sent, not our clock: another reader may have learned it after this request was made.
    if (there < 0 || signed_for < 0 || std::abs(there - signed_for) < slack) return false;
    Clocks& all = clocks.get();
    const std::lock_guard lock(all.mutex);
    all.ahead[server] = static_cast<int64_t>(there) - seconds_now();
    return true;
}

}  // namespace shf
