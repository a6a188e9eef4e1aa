#include "feed/feed_server.h"

#include "core/log.h"
#include "feed/feed_options.h"
#include "url/redact.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace shf {

namespace {

constexpr long server_tick_ms = 100;
// What a consumer sends is small; a position has the shards of its shuffle buffer.
constexpr int64_t largest_message = 16 << 20;
constexpr int most_unread = 16, most_unsent = 65536;  // messages of a consumer
constexpr int most_at_once = 1000;
constexpr size_t most_consumers = 4096, most_lanes = 4096;  // of all of them
// Memory of messages that were sent, for the next ones: fresh memory costs more than to fill it.
constexpr uint64_t most_kept = 64 << 20;
// Lanes that were closed and still read. While there are more, no messages are taken.
constexpr size_t most_closing = 256;
constexpr auto closing_pause = std::chrono::milliseconds(1);
// A server that is drained waits so long for its consumers.
constexpr auto drain_time = std::chrono::seconds(10);

std::span<const uint8_t> name_bytes(const std::string& text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// In a time that does not depend on where they differ.
bool same_secret(const std::string& a, const std::string& b) {
    if (a.size() != b.size()) return false;
    unsigned difference = 0;
    for (size_t i = 0; i < a.size(); ++i)
        difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
    return difference == 0;
}

}  // namespace

FeedServer::FeedServer(std::span<const char* const> urls, const Options& options,
                       const std::string& address)
    : urls_(urls.begin(), urls.end()),
      options_(options),
      rows_(options.batch > 0),
      payloads_(Recycler::make(std::min(options.memory / 4, most_kept))),
      socket_(context_, ZMQ_ROUTER) {
    for (const std::string& url : urls_) url_pointers_.push_back(url.c_str());
    if (is_feed(urls)) throw Error(SHF_E_USAGE, "a feed of a feed", "give the shards themselves");
    if (rows_) const RowWriter checked(options_);
    {
        const LaneContext context(urls, options_);
        for (uint64_t i = 0; i < context.shards.size(); ++i)
            shards_.push_back(redact(context.shards.at(i)));
        shards_hash_ = hash_of_names(context.shards);
    }
    socket_.set(ZMQ_LINGER, 1000);
    // What a consumer is sent is bounded by its credit; one that reads nothing is dropped.
    socket_.set(ZMQ_SNDHWM, most_unsent);
    socket_.set(ZMQ_ROUTER_MANDATORY, 1);
    socket_.set(ZMQ_RCVHWM, most_unread);
    socket_.set(ZMQ_MAXMSGSIZE, largest_message);
    // Else an address of IPv4 is shown as one that is mapped.
    if (address.find('[') != std::string::npos) socket_.set(ZMQ_IPV6, 1);
    if (!options_.feed_secret_key.empty()) {
        (void)CurveKeys::public_of(options_.feed_secret_key);
        socket_.set(ZMQ_CURVE_SERVER, 1);
        socket_.set(ZMQ_CURVE_SECRETKEY, options_.feed_secret_key);
    }
    socket_.bind(address);
    address_ = socket_.endpoint();
    address_.replace(0, address_.find("://"), "feed");
}

FeedServer::~FeedServer() = default;

void FeedServer::drain() noexcept {
    draining_ = true;
    bell_.ring();
}

void FeedServer::stop() noexcept {
    stopping_ = true;
    bell_.ring();
}

void FeedServer::run() {
    running_ = true;
    while (!draining_ && !stopping_) step();
    running_ = false;
    for (const auto& [name, consumer] : consumers_) send(name, encode_plain(FrameType::drain));
    const auto until = Clock::now() + drain_time;
    const auto has_lanes = [this] {
        return std::any_of(consumers_.begin(), consumers_.end(),
                           [](const auto& entry) { return !entry.second.lanes.empty(); });
    };
    while (!stopping_ && has_lanes() && Clock::now() < until) step();
    for (const auto& [name, consumer] : consumers_) send(name, encode_plain(FrameType::bye));
    for (auto& [name, consumer] : consumers_)
        for (auto& [opening, lane] : consumer.lanes) lane->stop();
    consumers_.clear();
    closing_.clear();
    count();
}

void FeedServer::step() {
    FeedSocket* const sockets[] = {&socket_};
    wait_for_messages(sockets, bell_, server_tick_ms);
    FeedMessage message;
    for (int i = 0; i < most_at_once && closing_.size() < most_closing && socket_.receive(message);
         ++i)
        receive(std::move(message));
    if (closing_.size() >= most_closing) std::this_thread::sleep_for(closing_pause);
    send_posted();
    give_credit();
    forget_silent();
    count();
}

uint64_t FeedServer::lanes_in_all() const {
    uint64_t lanes = 0;
    for (const auto& [name, consumer] : consumers_) lanes += consumer.lanes.size();
    return lanes;
}

void FeedServer::count() {
    work_.consumers = consumers_.size();
    work_.lanes = lanes_in_all();
}

// ---- Messages -----------------------------------------------------------------------------------

void FeedServer::send(const Name& name, std::vector<uint8_t> frame) {
    FeedMessage message;
    message.emplace_back(name_bytes(name));
    message.emplace_back(std::span<const uint8_t>(frame));
    socket_.send(std::move(message));
}

// On the thread of a lane.
void FeedServer::post(const Name& name, FeedMessage message) noexcept {
    {
        const std::lock_guard lock(mutex_);
        posted_.emplace_back(name, std::move(message));
    }
    bell_.ring();
}

void FeedServer::send_posted() {
    std::deque<std::pair<Name, FeedMessage>> posted;
    {
        const std::lock_guard lock(mutex_);
        posted.swap(posted_);
    }
    for (auto& [name, parts] : posted) {
        FeedMessage message;
        message.emplace_back(name_bytes(name));
        const auto consumer = consumers_.find(name);
        for (FeedPart& part : parts) {
            if (consumer == consumers_.end()) break;
            message.emplace_back(std::move(part), consumer->second.unsent);
        }
        if (consumer == consumers_.end()) continue;
        if (!socket_.send(std::move(message))) forget(name);
    }
}

void FeedServer::give_credit() {
    for (auto& [name, consumer] : consumers_) {
        if (*consumer.unsent > options_.memory) continue;
        for (const auto& [opening, events] : consumer.credit)
            if (const auto lane = consumer.lanes.find(opening); lane != consumer.lanes.end())
                lane->second->add_credit(events);
        consumer.credit.clear();
    }
}

// It is gone, or reads nothing.
void FeedServer::forget(const Name& name) {
    if (const auto consumer = consumers_.find(name); consumer != consumers_.end()) forget(consumer);
}

// Returns the next one.
FeedServer::Consumers::iterator FeedServer::forget(Consumers::iterator consumer) {
    auto& lanes = consumer->second.lanes;
    while (!lanes.empty()) close(consumer->second, lanes.begin()->first);
    return consumers_.erase(consumer);
}

// A message that is none, or makes no sense, costs its consumer the answer and nobody else.
void FeedServer::receive(FeedMessage message) {
    if (message.size() != 2) {
        ++work_.refused;
        return;
    }
    const std::span<const uint8_t> from = message[0].bytes(), frame = message[1].bytes();
    const Name name(from.begin(), from.end());
    try {
        const FrameType type = type_of(frame);
        if (type == FrameType::hello) return greet(name, frame);
        const auto consumer = consumers_.find(name);
        // One of before this server was started again, or that was silent for long.
        if (consumer == consumers_.end()) {
            if (type != FrameType::bye) send(name, encode_plain(FrameType::bye));
            return;
        }
        receive_from(consumer->second, name, frame, type);
    } catch (...) {
        ++work_.refused;
        send(name, encode_refused(describe_exception()));
    }
}

void FeedServer::receive_from(Consumer& consumer, const Name& name, std::span<const uint8_t> frame,
                              FrameType type) {
    consumer.heard = Clock::now();
    switch (type) {
        case FrameType::open: return open(consumer, name, decode_open(frame));
        case FrameType::credit: {
            const auto [opening, events] = decode_credit(frame);
            // What it asks for without reading what it has asked for waits.
            if (consumer.lanes.contains(opening)) {
                uint64_t& credit = consumer.credit[opening];
                credit = std::min(credit + std::min(events, LaneFeeder::largest_credit),
                                  LaneFeeder::largest_credit);
            }
            return;
        }
        case FrameType::close: return close(consumer, decode_close(frame));
        case FrameType::ping: return send(name, encode_plain(FrameType::pong));
        case FrameType::bye: return forget(name);
        default: return;
    }
}

WelcomeFrame FeedServer::welcome(const Options& options) {
    WelcomeFrame welcome{.shards = shards_, .rows = rows_, .decode = options_.decode, .counts = {}};
    if (options.even == Even::none) return welcome;
    // A consumer that did not wait for them asks again.
    const std::string key = options_for_feed(options);
    auto counts = counts_.find(key);
    if (counts == counts_.end()) {
        constexpr size_t most = 16;
        if (counts_.size() >= most) counts_.clear();
        counts = counts_.emplace(key, LaneContext(url_pointers_, options).sample_counts()).first;
    }
    welcome.counts = counts->second;
    return welcome;
}

void FeedServer::greet(const Name& name, std::span<const uint8_t> frame) {
    const HelloFrame hello = decode_hello(frame);
    if (!same_secret(hello.token, options_.feed_token))
        throw Error(SHF_E_AUTH, "the server does not know this feed_token",
                    "give the feed_token that the server was started with");
    if (draining_) return send(name, encode_plain(FrameType::drain));
    if (consumers_.size() >= most_consumers && !consumers_.contains(name))
        throw Error(SHF_E_LIMIT, "the server has " + plural(consumers_.size(), "consumer"),
                    "start more servers");
    Options options = options_of_consumer(options_, hello.options);
    const WelcomeFrame answer = welcome(options);
    Consumer& consumer = consumers_[name];
    consumer.options = std::move(options);
    consumer.heard = Clock::now();
    send(name, encode(answer));
}

void FeedServer::open(Consumer& consumer, const Name& name, const OpenFrame& open) {
    if (draining_) return send(name, encode_plain(FrameType::drain));
    // It takes each lane from one message on, and has given up what it opened before.
    const auto former =
        std::find_if(consumer.lanes.begin(), consumer.lanes.end(),
                     [&](const auto& entry) { return entry.second->number() == open.from.lane; });
    if (former != consumer.lanes.end()) close(consumer, former->first);
    if (lanes_in_all() >= most_lanes)
        throw Error(SHF_E_LIMIT, "the server reads " + std::to_string(most_lanes) + " lanes",
                    "start more servers, or lower lanes");
    if (consumer.lanes.contains(open.opening))
        throw_damaged_frame("opens a lane under a number that is in use");
    Options options = consumer.options;
    options.epochs = open.epochs;
    const uint64_t consumers = options.world_size * options.num_workers;
    // What it does not read stays below the option memory, about.
    const uint64_t share = options_.memory / std::max<uint64_t>(options.lanes / consumers, 1);
    OpenFrame bounded = open;
    bounded.block_bytes = std::min(open.block_bytes, std::max(share / 2, least_block));
    consumer.lanes.emplace(
        open.opening, std::make_unique<LaneFeeder>(
                          LaneFeeder::Shards{url_pointers_, shards_.size(), shards_hash_}, options,
                          rows_, bounded,
                          LaneFeeder::Output{
                              [this, name](FeedMessage message) { post(name, std::move(message)); },
                              work_, *payloads_, share / bounded.block_bytes}));
}

void FeedServer::close(Consumer& consumer, uint64_t opening) {
    const auto lane = consumer.lanes.find(opening);
    if (lane == consumer.lanes.end()) return;
    lane->second->stop();
    closing_.push_back(std::move(lane->second));
    consumer.credit.erase(opening);
    consumer.lanes.erase(lane);
}

// A consumer that was killed says nothing.
void FeedServer::forget_silent() {
    const auto now = Clock::now();
    const std::chrono::nanoseconds silence(2 * options_.feed_timeout);
    for (auto entry = consumers_.begin(); entry != consumers_.end();) {
        if (now - entry->second.heard <= silence) {
            ++entry;
            continue;
        }
        log(options_, SHF_LOG_WARNING, "a consumer of the feed was silent and is forgotten");
        entry = forget(entry);
    }
    std::erase_if(closing_, [](const auto& lane) { return lane->ended(); });
}

}  // namespace shf
