#include "feed/message_socket.h"

#include "core/error.h"
#include "core/fork.h"
#include "core/options.h"
#include "core/threads.h"
#include "url/scheme.h"

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <fcntl.h>
#include <linux/sockios.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <limits>
#include <string_view>
#include <thread>
#include <utility>

namespace shf {

namespace {

using std::chrono::milliseconds;

// The most messages that wait on each side of a connection. A sender also counts their bytes. A
// receiver cannot: it holds up to so many messages of each sender.
constexpr int sender_queue = 64, receiver_queue = 16;
// In milliseconds: how often a state without an event is polled, and the longest wait between two
// looks at the clock.
constexpr long look_again = 2, look_for_progress = 100, longest_wait = 1'000;

struct Kind {
    int type;
    bool binds;
};
// Of message_schemes, in that order.
constexpr std::array<Kind, message_schemes.size()> kinds = {{
    {ZMQ_PUSH, false},
    {ZMQ_PULL, true},
    {ZMQ_XPUB, true},
    {ZMQ_SUB, false},
    {ZMQ_PUSH, true},
    {ZMQ_PULL, false},
    {ZMQ_XPUB, false},
    {ZMQ_SUB, true},
}};

// ZeroMQ removes whatever has the name of a socket that it makes, as unix(7) asks for: also a file,
// and the socket of a receiver that is reading.
void check_place(const std::string& path) {
    struct stat there {};
    if (::lstat(path.c_str(), &there) != 0) return;
    if (!S_ISSOCK(there.st_mode))
        throw Error(SHF_E_USAGE, escape(path) + " is there, and no socket",
                    "give the path of a socket, which is made there");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) return;  // ZeroMQ refuses it
    std::copy(path.begin(), path.end(), address.sun_path);
    const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (probe.get() < 0) throw system_error("make a socket", errno);
    if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
        errno == EAGAIN)
        throw Error(SHF_E_IO, "the socket " + escape(path) + " is in use",
                    "give each receiver or sender that binds a path of its own");
}

// Whether a descriptor is a connection. ZeroMQ may have closed the one that it reported, and the
// program may have opened another file under the same number.
bool is_connection(int fd) {
    int domain = 0;
    socklen_t size = sizeof domain;
    return ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
           (domain == AF_UNIX || domain == AF_INET || domain == AF_INET6);
}

// Whether the other side of a connection closed it with something unread (unix(7): ECONNRESET), or
// it broke (tcp(7)).
bool is_closed(int fd) {
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error != 0) return true;
    tcp_info info{};
    size = sizeof info;
    return ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
           info.tcpi_state == TCP_CLOSE;
}

constexpr int watched_events = ZMQ_EVENT_CONNECTED | ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED |
                               ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                               ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                               ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;

}  // namespace

MessageAddress MessageAddress::parse(const std::string& url) {
    // In lower case only, as ShardList refuses it in lists.
    const std::string scheme = url.substr(0, url.find(':'));
    const size_t plus = scheme.find('+');
    const auto known = std::find(message_schemes.begin(), message_schemes.end(),
                                 std::string_view(scheme).substr(0, plus));
    const std::string rest = url.substr(std::min(url.size(), scheme.size() + 3));
    const std::string transport = plus == scheme.npos ? "tcp" : scheme.substr(plus + 1);
    if (known == message_schemes.end() || rest.empty() ||
        (transport != "tcp" && transport != "ipc"))
        throw Error(SHF_E_USAGE, "no address of ZeroMQ",
                    "SCHEME://HOST:PORT, or SCHEME+ipc:///PATH");
    if (rest.find('#') != rest.npos)
        throw Error(SHF_E_USAGE,
                    "samples are not chosen by #PREFIX: none has a message that begins so",
                    "leave it out");
    const Kind& kind = kinds[static_cast<size_t>(known - message_schemes.begin())];
    return {kind.type, kind.binds, transport + "://" + rest};
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
    std::unique_ptr<FeedSocket> watch;  // reports connections
};

MessageSocket::MessageSocket(const MessageAddress& address, const Options& options,
                             const Cancel& cancel)
    : address_(address),
      patience_(options.pipe_timeout),
      memory_(options.memory),
      cancel_(cancel),
      generation_(fork_generation()),
      sockets_(std::make_unique<Sockets>(address.type)) {
    FeedSocket& socket = *sockets_->socket;
    socket.set(ZMQ_SNDHWM, sender_queue);
    socket.set(ZMQ_RCVHWM, receiver_queue);
    socket.set(ZMQ_LINGER, 0);
    if (address.type == ZMQ_XPUB) socket.set(ZMQ_XPUB_NODROP, 1);
    if (address.type == ZMQ_SUB) socket.set(ZMQ_SUBSCRIBE, std::string_view());
    if (address.sends()) sockets_->watch = socket.watch(sockets_->context, watched_events);
    constexpr std::string_view ipc = "ipc://";
    if (address.binds && address.location.starts_with(ipc))
        check_place(address.location.substr(ipc.size()));
    try {
        address.binds ? socket.bind(address.location) : socket.connect(address.location);
    } catch (const Error& error) {
        Fault fault = error.fault();
        fault.help = address.binds ? "0.0.0.0 means all addresses of this machine, names of hosts "
                                     "are not taken; or look at what listens there already"
                                   : "look at host and port";
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
bool MessageSocket::wait(short events, long milliseconds) {
    cancel_.check();
    note_connections();
    const int cancel = cancel_.fd();
    std::array<zmq_pollitem_t, 2> items = {
        {{sockets_->socket->raw(), -1, events, 0}, {nullptr, cancel, ZMQ_POLLIN, 0}}};
    const bool watched = cancel >= 0;
    const long most = watched ? milliseconds : std::min(milliseconds, look_again);
    (void)libzmq().poll(items.data(), watched ? 2 : 1, most);
    cancel_.check();
    return (items[0].revents & events) != 0;
}

bool MessageSocket::ready() {
    return wait(ZMQ_POLLIN, 0);
}

FeedMessage MessageSocket::receive() {
    const Silence silence(patience_);
    FeedMessage message;
    while (!sockets_->socket->receive(message)) {
        if (!wait(ZMQ_POLLIN, silence.left()) && silence.is_too_long())
            throw silent("no message came");
    }
    uint64_t size = 0;
    for (const FeedPart& part : message) size += part.bytes().size();
    if (size > memory_)
        throw Error(SHF_E_LIMIT,
                    "a message of " + std::to_string(size) +
                        " bytes, above memory=" + std::to_string(memory_),
                    "raise the option memory");
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
    Silence silence(patience_);
    const bool publishes = address_.type == ZMQ_XPUB;
    uint64_t last = unsent_->load();
    FeedMessage message;
    // Sockets that publish say that they have room also where one of their receivers has none.
    // ZeroMQ says that there is room again when half of what waited has gone.
    const auto sends = [&] {
        if (publishes && !has_subscriber()) return false;
        if (message.empty()) {
            if (last != 0 && last + bytes.size() > memory_) return false;
            message.emplace_back(FeedPart(bytes), unsent_);
            last = unsent_->load();
        }
        return sockets_->socket->send(std::move(message));
    };
    note_connections();
    check_receivers();
    while (!sends()) {
        if (publishes && !subscribed_)
            (void)wait(ZMQ_POLLIN, silence.left());
        else if (publishes || message.empty())
            (void)wait(0, std::min(look_again, silence.left()));
        else
            (void)wait(ZMQ_POLLOUT, std::min(look_for_progress, silence.left()));
        check_receivers();
        if (const uint64_t left = unsent_->load(); left != last) {
            last = left;
            silence.end();
        }
        if (silence.is_too_long()) throw silent("no receiver took a message");
    }
    sent_ = true;
}

// One event is a number of 16 bits and one of 32: which it is, and a descriptor.
void MessageSocket::take_event(const FeedMessage& event) {
    uint16_t number = 0;
    int32_t fd = -1;
    if (event[0].bytes().size() < sizeof number + sizeof fd) return;
    std::memcpy(&number, event[0].bytes().data(), sizeof number);
    std::memcpy(&fd, event[0].bytes().data() + sizeof number, sizeof fd);
    if (number == ZMQ_EVENT_CONNECTED || number == ZMQ_EVENT_ACCEPTED) {
        connections_.push_back(fd);
    } else if (number == ZMQ_EVENT_DISCONNECTED) {
        std::erase(connections_, fd);
        lost_ |= sent_ && !refused_;
    }
    // ZeroMQ closes a connection that speaks another language right after it says so.
    refused_ = number == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL ||
               number == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL ||
               number == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
}

void MessageSocket::note_connections() {
    if (!sockets_->watch) return;
    FeedMessage event;
    while (sockets_->watch->receive(event)) take_event(event);
}

// A publisher may lose subscribers. A pushing sender may not: no other receiver has the messages
// that the lost one did not read.
void MessageSocket::check_receivers() {
    if (lost_ && address_.type == ZMQ_PUSH) refuse_loss();
}

void MessageSocket::refuse_loss() const {
    throw Error(SHF_E_IO,
                "a receiver at " + escape(address_.location) +
                    " went away before it had all that was sent to it",
                "see why it ended, and send all samples again");
}

// Until ZeroMQ has given everything to the system.
void MessageSocket::wait_for_room(Silence& silence) {
    for (uint64_t last = 0, left = 0; (left = unsent_->load()) != 0; last = left) {
        if (left != last) silence.end();
        if (silence.is_too_long()) throw silent("no receiver took the last messages");
        (void)wait(0, look_again);
    }
}

void MessageSocket::drain() {
    Silence silence(patience_);
    wait_for_room(silence);
    note_connections();
    check_receivers();
}

// Waits until receivers on this machine have read what was written to their sockets, and the
// systems of others have it (SIOCOUTQ, see unix(7) and tcp(7)).
void MessageSocket::wait_for_readers(Silence& silence) {
    int last = 0;
    for (const Descriptor& socket : unread_) {
        for (int left = 0; ::ioctl(socket.get(), SIOCOUTQ, &left) == 0 && left > 0; last = left) {
            if (is_closed(socket.get())) break;  // nobody takes the rest
            if (left != last) silence.end();
            if (silence.is_too_long()) throw silent("no receiver read its messages");
            cancel_.check();
            std::this_thread::sleep_for(milliseconds(look_again));
        }
        if (address_.type == ZMQ_PUSH && is_closed(socket.get())) refuse_loss();
    }
}

// Closes the sockets, in a thread, as nothing ends that wait.
void MessageSocket::close(Silence& silence) {
    struct Closing {
        std::unique_ptr<Sockets> sockets;
        std::promise<void> done;
    };
    const auto closing = std::make_shared<Closing>();
    closing->sockets = std::move(sockets_);
    const std::future<void> closed = closing->done.get_future();
    std::vector<std::thread> threads;
    try {
        start_thread(threads, "threads that send the last messages", 1, [closing] {
            closing->sockets.reset();
            closing->done.set_value();
        });
    } catch (...) {
        closing->sockets->socket->set(ZMQ_LINGER, 0);
        throw;
    }
    try {
        while (closed.wait_for(milliseconds(look_again)) != std::future_status::ready) {
            cancel_.check();
            if (silence.is_too_long()) throw silent("no receiver took the last messages");
        }
        threads.front().join();
    } catch (...) {
        threads.front().detach();
        throw;
    }
}

void MessageSocket::finish() {
    Silence silence(patience_);
    wait_for_room(silence);
    note_connections();
    for (const int fd : connections_)
        if (const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 3); copy >= 0) {
            Descriptor duplicate(copy);
            if (is_connection(copy)) unread_.push_back(std::move(duplicate));
        }
    // ZeroMQ may have the end of it in a buffer. Closing waits for that.
    constexpr uint64_t longest = std::numeric_limits<int>::max();
    sockets_->socket->set(
        ZMQ_LINGER,
        patience_ == 0 ? -1 : static_cast<int>(std::min(patience_ / 1'000'000, longest)));
    close(silence);
    wait_for_readers(silence);
}

}  // namespace shf
