#include "feed/feed_socket.h"

#include "core/error.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <utility>

namespace shf {

namespace {

[[noreturn]] void throw_zmq(const std::string& doing) {
    const int number = libzmq().error_number();
    throw Error(SHF_E_IO, doing + ": " + libzmq().text_of_error(number));
}

}  // namespace

// ---- Messages -----------------------------------------------------------------------------------

FeedPart::FeedPart() : message_(std::make_unique<zmq_msg_t>()) {
    libzmq().msg_init(message_.get());
}

FeedPart::FeedPart(std::span<const uint8_t> bytes) : message_(std::make_unique<zmq_msg_t>()) {
    if (libzmq().msg_init_size(message_.get(), bytes.size()) != 0) throw std::bad_alloc();
    std::copy(bytes.begin(), bytes.end(), static_cast<uint8_t*>(libzmq().msg_data(raw())));
}

FeedPart::FeedPart(StorageRef bytes, size_t size) : message_(std::make_unique<zmq_msg_t>()) {
    auto kept = std::make_unique<StorageRef>(std::move(bytes));
    const auto release = [](void*, void* hint) { delete static_cast<StorageRef*>(hint); };
    if (libzmq().msg_init_data(message_.get(), (*kept)->data, size, release, kept.get()) != 0)
        throw std::bad_alloc();
    (void)kept.release();
}

FeedPart::FeedPart(FeedPart part, std::shared_ptr<UnsentBytes> unsent)
    : message_(std::make_unique<zmq_msg_t>()) {
    struct Counted {
        FeedPart part;
        std::shared_ptr<UnsentBytes> unsent;
        size_t size;
    };
    const std::span<const uint8_t> bytes = part.bytes();
    std::unique_ptr<Counted> counted(new Counted{std::move(part), std::move(unsent), bytes.size()});
    const auto release = [](void*, void* hint) {
        const std::unique_ptr<Counted> sent(static_cast<Counted*>(hint));
        *sent->unsent -= sent->size;
    };
    if (libzmq().msg_init_data(message_.get(), const_cast<uint8_t*>(bytes.data()), bytes.size(),
                               release, counted.get()) != 0)
        throw std::bad_alloc();
    *counted->unsent += bytes.size();
    (void)counted.release();
}

FeedPart::~FeedPart() {
    if (message_) libzmq().msg_close(message_.get());
}

FeedPart::FeedPart(FeedPart&& other) noexcept = default;

FeedPart& FeedPart::operator=(FeedPart&& other) noexcept {
    std::swap(message_, other.message_);
    return *this;
}

std::span<const uint8_t> FeedPart::bytes() const {
    return {static_cast<const uint8_t*>(libzmq().msg_data(message_.get())),
            libzmq().msg_size(message_.get())};
}

// ---- Sockets ------------------------------------------------------------------------------------

FeedContext::FeedContext() : context_(libzmq().ctx_new()) {
    if (!context_) throw_zmq("a context of ZeroMQ");
    constexpr int sockets = 16'383;  // three for each server
    libzmq().ctx_set(context_, ZMQ_MAX_SOCKETS, sockets);
}

FeedContext::~FeedContext() {
    while (libzmq().ctx_term(context_) != 0 && libzmq().error_number() == EINTR) {
    }
}

FeedSocket::FeedSocket(FeedContext& context, int type)
    : socket_(libzmq().socket(context.raw(), type)) {
    if (!socket_) throw_zmq("a socket of ZeroMQ");
}

FeedSocket::~FeedSocket() {
    libzmq().close(socket_);
}

void FeedSocket::set_raw(int option, const void* value, size_t size) {
    if (libzmq().setsockopt(socket_, option, value, size) != 0)
        throw_zmq("option " + std::to_string(option) + " of a socket of ZeroMQ");
}

void FeedSocket::set(int option, int value) {
    set_raw(option, &value, sizeof value);
}

void FeedSocket::set(int option, int64_t value) {
    set_raw(option, &value, sizeof value);
}

void FeedSocket::set(int option, std::string_view value) {
    set_raw(option, value.data(), value.size());
}

void FeedSocket::bind(const std::string& address) {
    if (libzmq().bind(socket_, address.c_str()) != 0) throw_zmq("bind to " + escape(address));
}

void FeedSocket::connect(const std::string& address) {
    if (libzmq().connect(socket_, address.c_str()) != 0) throw_zmq("connect to " + escape(address));
}

std::string FeedSocket::endpoint() const {
    char text[256];
    size_t size = sizeof text;
    if (libzmq().getsockopt(socket_, ZMQ_LAST_ENDPOINT, text, &size) != 0)
        throw_zmq("the address of a socket of ZeroMQ");
    return {text};
}

std::unique_ptr<FeedSocket> FeedSocket::watch(FeedContext& context, int events) {
    static std::atomic<uint64_t> count{0};
    const std::string address = "inproc://events-" + std::to_string(count.fetch_add(1));
    if (libzmq().socket_monitor(socket_, address.c_str(), events) != 0)
        throw_zmq("watch a socket of ZeroMQ");
    auto watch = std::make_unique<FeedSocket>(context, ZMQ_PAIR);
    watch->set(ZMQ_LINGER, 0);
    // ZeroMQ's own thread waits where it has no room for an event.
    watch->set(ZMQ_RCVHWM, 0);
    watch->connect(address);
    return watch;
}

void FeedSocket::unwatch() noexcept {
    libzmq().socket_monitor(socket_, nullptr, 0);
}

bool FeedSocket::receive(FeedMessage& out) {
    out.clear();
    for (;;) {
        FeedPart part;
        if (libzmq().msg_recv(part.raw(), socket_, ZMQ_DONTWAIT) < 0) {
            const int number = libzmq().error_number();
            if (number == EINTR) continue;
            if (number == EAGAIN && out.empty()) return false;
            throw_zmq("receive");
        }
        const bool more = libzmq().msg_more(part.raw()) != 0;
        out.push_back(std::move(part));
        if (!more) return true;
    }
}

bool FeedSocket::send(FeedMessage&& message) {
    for (size_t i = 0; i < message.size(); ++i) {
        const int more = i + 1 < message.size() ? ZMQ_SNDMORE : 0;
        while (libzmq().msg_send(message[i].raw(), socket_, ZMQ_DONTWAIT | more) < 0) {
            const int number = libzmq().error_number();
            if (number == EINTR) continue;
            if (number == EAGAIN || number == EHOSTUNREACH) return false;
            throw_zmq("send");
        }
    }
    return true;
}

// ---- Waiting ------------------------------------------------------------------------------------

FeedBell::FeedBell() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (fd_ < 0) throw Error::system("eventfd", errno);
}

FeedBell::~FeedBell() {
    ::close(fd_);
}

void FeedBell::ring() noexcept {
    const uint64_t one = 1;
    (void)!::write(fd_, &one, sizeof one);
}

void FeedBell::silence() noexcept {
    uint64_t rung = 0;
    (void)!::read(fd_, &rung, sizeof rung);
}

void wait_for_messages(std::span<FeedSocket* const> sockets, FeedBell& bell, long milliseconds) {
    std::vector<zmq_pollitem_t> items{{nullptr, bell.fd(), ZMQ_POLLIN, 0}};
    for (const FeedSocket* socket : sockets) items.push_back({socket->raw(), -1, ZMQ_POLLIN, 0});
    if (libzmq().poll(items.data(), static_cast<int>(items.size()), milliseconds) < 0 &&
        libzmq().error_number() != EINTR)
        throw_zmq("wait for messages");
    if (items[0].revents != 0) bell.silence();
}

// ---- Keys ---------------------------------------------------------------------------------------

CurveKeys CurveKeys::make() {
    char public_key[41], secret_key[41];
    if (libzmq().curve_keypair(public_key, secret_key) != 0)
        throw Error(SHF_E_UNSUPPORTED, "this libzmq has no encryption",
                    "install a libzmq that is built with libsodium");
    return {.public_key = public_key, .secret_key = secret_key};
}

std::string CurveKeys::public_of(const std::string& secret) {
    char public_key[41];
    if (libzmq().curve_public(public_key, secret.c_str()) != 0)
        throw Error(SHF_E_USAGE, "feed_secret_key is no key of CURVE",
                    "give the 40 characters that `shardfeed feed --make-keys` has written");
    return {public_key};
}

}  // namespace shf
