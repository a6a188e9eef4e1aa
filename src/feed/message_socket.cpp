#include "feed/message_socket.h"

#include "core/error.h"
#include "core/fork.h"
#include "core/options.h"
#include "url/scheme.h"

#include <sys/ioctl.h>

#include <fcntl.h>
#include <linux/sockios.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <future>
#include <string_view>
#include <thread>
#include <utility>

namespace shf {

namespace {

using std::chrono::milliseconds;

// Messages that wait on each side of a connection.
constexpr int queue = 64;
// How often is looked at what tells nobody that it has changed, in milliseconds.
constexpr long look_again = 2;
// A wait that is longer looks at the clock now and then.
constexpr long longest_wait = 1'000;

struct Kind {
    std::string_view scheme;
    int type;
    bool binds;
};
constexpr std::array kinds = {
    Kind{"zpush", ZMQ_PUSH, false}, Kind{"zpull", ZMQ_PULL, true},  Kind{"zpub", ZMQ_XPUB, true},
    Kind{"zsub", ZMQ_SUB, false},   Kind{"zrpush", ZMQ_PUSH, true}, Kind{"zrpull", ZMQ_PULL, false},
    Kind{"zrpub", ZMQ_XPUB, false}, Kind{"zrsub", ZMQ_SUB, true},
};

}  // namespace

MessageAddress MessageAddress::parse(const std::string& url) {
    const std::string scheme = scheme_of(url);
    const size_t plus = scheme.find('+');
    const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& each) {
        return each.scheme == scheme.substr(0, plus);
    });
    std::string rest = url.substr(std::min(url.size(), scheme.size() + 3));
    std::string topic;
    if (const size_t hash = rest.find('#'); hash != rest.npos) {
        topic = rest.substr(hash + 1);
        rest.resize(hash);
    }
    const std::string transport = plus == scheme.npos ? "tcp" : scheme.substr(plus + 1);
    if (kind == kinds.end() || rest.empty() || (transport != "tcp" && transport != "ipc"))
        throw Error(SHF_E_USAGE, "no address of ZeroMQ",
                    "SCHEME://HOST:PORT, or SCHEME+ipc:///PATH");
    if (!topic.empty() && kind->type != ZMQ_SUB)
        throw Error(SHF_E_USAGE, "only zsub:// and zrsub:// choose messages by #PREFIX",
                    "leave it out");
    return {kind->type, kind->binds, transport + "://" + rest, topic};
}

bool MessageAddress::sends() const {
    return type == ZMQ_PUSH || type == ZMQ_XPUB;
}

// ---- Opening ------------------------------------------------------------------------------------

struct MessageSocket::Sockets {
    explicit Sockets(int type) : socket(std::make_unique<FeedSocket>(context, type)) {}
    ~Sockets() {
        if (watch) socket->unwatch();
    }
    FeedContext context;
    std::unique_ptr<FeedSocket> socket;
    std::unique_ptr<FeedSocket> watch;  // tells of connections
};

MessageSocket::MessageSocket(const MessageAddress& address, const Options& options,
                             const Cancel& cancel)
    : address_(address),
      patience_(options.pipe_timeout),
      cancel_(cancel),
      generation_(fork_generation()),
      sockets_(std::make_unique<Sockets>(address.type)) {
    FeedSocket& socket = *sockets_->socket;
    socket.set(ZMQ_SNDHWM, queue);
    socket.set(ZMQ_RCVHWM, queue);
    socket.set(ZMQ_LINGER, 0);
    socket.set(ZMQ_MAXMSGSIZE, static_cast<int64_t>(options.memory));
    if (address.type == ZMQ_XPUB) socket.set(ZMQ_XPUB_NODROP, 1);
    if (address.type == ZMQ_SUB) socket.set(ZMQ_SUBSCRIBE, std::string_view(address.topic));
    // A receiver drops what it has not read of a socket of the machine whose sender has ended.
    if (address.type == ZMQ_PUSH && address.location.starts_with("ipc:"))
        sockets_->watch = socket.watch(
            sockets_->context, ZMQ_EVENT_CONNECTED | ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED);
    try {
        address.binds ? socket.bind(address.location) : socket.connect(address.location);
    } catch (const Error& error) {
        Fault fault = error.fault();
        fault.help = "look at host and port, or at what listens there already";
        throw Error(std::move(fault));
    }
}

MessageSocket::~MessageSocket() {
    if (generation_ != fork_generation()) (void)sockets_.release();
}

// ---- Waiting ------------------------------------------------------------------------------------

// How long nothing has happened.
class MessageSocket::Silence {
  public:
    explicit Silence(uint64_t patience) : patience_(patience) {}
    void end() { start_ = Clock::now(); }
    [[nodiscard]] bool is_too_long() const {
        return patience_ != 0 && Clock::now() - start_ >= std::chrono::nanoseconds(patience_);
    }
    // Milliseconds that may be waited for now.
    [[nodiscard]] long left() const {
        if (patience_ == 0) return longest_wait;
        const auto left = start_ + std::chrono::nanoseconds(patience_) - Clock::now();
        const auto rounded = std::chrono::ceil<milliseconds>(left).count();
        return std::clamp<long>(static_cast<long>(rounded), 0, longest_wait);
    }

  private:
    const uint64_t patience_;
    Clock::time_point start_ = Clock::now();
};

Error MessageSocket::silent(const char* what) const {
    return {SHF_E_IO,
            std::string(what) + " at " + escape(address_.location) + " for " +
                std::to_string(patience_ / 1'000'000) + " ms",
            "see whether the other side runs, or raise the option pipe_timeout, 0 for no limit"};
}

// Whether one of `events` is there now. Throws Error(CANCELLED).
bool MessageSocket::wait(short events, long milliseconds) const {
    cancel_.check();
    const int cancel = cancel_.fd();
    std::array<zmq_pollitem_t, 2> items = {
        {{sockets_->socket->raw(), -1, events, 0}, {nullptr, cancel, ZMQ_POLLIN, 0}}};
    const bool watched = cancel >= 0;
    const long most = watched ? milliseconds : std::min(milliseconds, look_again);
    (void)libzmq().poll(items.data(), watched ? 2 : 1, most);
    cancel_.check();
    return (items[0].revents & events) != 0;
}

bool MessageSocket::ready() const {
    return wait(ZMQ_POLLIN, 0);
}

FeedMessage MessageSocket::receive() {
    const Silence silence(patience_);
    FeedMessage message;
    while (!sockets_->socket->receive(message)) {
        if (!wait(ZMQ_POLLIN, silence.left()) && silence.is_too_long())
            throw silent("no message came");
    }
    return message;
}

// ---- Sending ------------------------------------------------------------------------------------

// A publisher has its subscriptions as messages. What it sends before the first one is for nobody.
bool MessageSocket::has_subscriber() {
    FeedMessage subscription;
    while (sockets_->socket->receive(subscription))
        subscribed_ |= !subscription[0].bytes().empty() && subscription[0].bytes()[0] == 1;
    return subscribed_;
}

void MessageSocket::send(std::span<const uint8_t> bytes) {
    const Silence silence(patience_);
    const bool publishes = address_.type == ZMQ_XPUB;
    FeedMessage message;
    message.emplace_back(FeedPart(bytes), unsent_);
    // Sockets that publish say that they have room also where one of their receivers has none.
    while ((publishes && !has_subscriber()) || !sockets_->socket->send(std::move(message))) {
        const short events = publishes && subscribed_ ? 0 : publishes ? ZMQ_POLLIN : ZMQ_POLLOUT;
        const long most = events == 0 ? std::min(look_again, silence.left()) : silence.left();
        if (!wait(events, most) && silence.is_too_long())
            throw silent("no receiver took a message");
    }
    note_connections();
}

void MessageSocket::note_connections() {
    if (!sockets_->watch) return;
    FeedMessage event;
    while (sockets_->watch->receive(event)) {
        // A number of 16 bits and one of 32: the event, and the descriptor.
        uint16_t number = 0;
        int32_t fd = -1;
        if (event[0].bytes().size() < sizeof number + sizeof fd) continue;
        std::memcpy(&number, event[0].bytes().data(), sizeof number);
        std::memcpy(&fd, event[0].bytes().data() + sizeof number, sizeof fd);
        if (number == ZMQ_EVENT_DISCONNECTED)
            std::erase(connections_, fd);
        else
            connections_.push_back(fd);
    }
}

// Waits until receivers on this machine have read what was written to their sockets (SIOCOUTQ, see
// unix(7) and tcp(7)).
void MessageSocket::wait_for_readers(Silence& silence) {
    int last = 0;
    for (const Descriptor& socket : unread_)
        for (int left = 0; ::ioctl(socket.get(), SIOCOUTQ, &left) == 0 && left > 0; last = left) {
            if (left != last) silence.end();
            if (silence.is_too_long()) throw silent("no receiver read its messages");
            cancel_.check();
            std::this_thread::sleep_for(milliseconds(look_again));
        }
}

void MessageSocket::finish() {
    Silence silence(patience_);
    for (uint64_t last = 0, left = 0; (left = unsent_->load()) != 0; last = left) {
        if (left != last) silence.end();
        if (silence.is_too_long()) throw silent("no receiver took the last messages");
        (void)wait(0, look_again);
    }
    note_connections();
    for (const int fd : connections_)
        if (const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 3); copy >= 0) unread_.emplace_back(copy);
    // ZeroMQ may have the end of it in a buffer. Closing waits for that, and nothing ends it.
    sockets_->socket->set(ZMQ_LINGER, -1);
    std::promise<void> promise;
    std::future<void> closed = promise.get_future();
    std::thread closing([sockets = std::move(sockets_), done = std::move(promise)]() mutable {
        sockets.reset();
        done.set_value();
    });
    try {
        while (closed.wait_for(milliseconds(look_again)) != std::future_status::ready) {
            cancel_.check();
            if (silence.is_too_long()) throw silent("no receiver took the last messages");
        }
        closing.join();
    } catch (...) {
        closing.detach();
        throw;
    }
    wait_for_readers(silence);
}

}  // namespace shf
