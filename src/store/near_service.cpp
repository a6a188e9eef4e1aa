#include "store/near_service.h"

#include "core/error.h"
#include "core/per_process.h"
#include "io/descriptor.h"

#include <map>
#include <mutex>
#include <utility>

namespace shf {

namespace {

constexpr std::chrono::milliseconds near_patience{1000};
constexpr std::chrono::minutes remembered{1};
constexpr size_t most_near_answer = size_t{1} << 20;

struct Absent {
    std::mutex mutex;
    std::map<std::string, Clock::time_point> until;  // by server
};
constinit PerProcess<Absent> absent;

bool known_as_absent(const std::string& server) {
    Absent& all = absent.get();
    const std::lock_guard lock(all.mutex);
    const auto at = all.until.find(server);
    return at != all.until.end() && Clock::now() < at->second;
}

void remember_as_absent(const std::string& server) {
    Absent& all = absent.get();
    const std::lock_guard lock(all.mutex);
    all.until[server] = Clock::now() + remembered;
}

}  // namespace

HttpRequest near_request(std::string url) {
    HttpRequest request;
    request.target = url;
    request.url = std::move(url);
    request.near = true;
    request.connect_limit = near_patience;
    request.limit = near_patience;
    return request;
}

std::string near_header(const char* name, const std::string& value, const char* help) {
    if (value.find_first_of("\r\n") != value.npos)
        throw Error(SHF_E_USAGE, "a token for metadata with an end of line in it", help);
    return std::string(name) + ": " + value;
}

std::optional<HttpReply> ask_near(const HttpRequest& request, const SourceContext& context) {
    const std::string server = server_of(request.url);
    if (known_as_absent(server)) return std::nullopt;
    try {
        return http_ask(request, context, most_near_answer);
    } catch (const Error& error) {
        // The time of an opening says nothing of the service.
        if (error.code() != SHF_E_NET_TRANSIENT && error.code() != SHF_E_NET_PERMANENT) throw;
        remember_as_absent(server);
        return std::nullopt;
    }
}

}  // namespace shf
