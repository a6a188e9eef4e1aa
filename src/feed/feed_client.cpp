#include "feed/feed_client.h"

#include "core/error.h"
#include "core/opening.h"
#include "feed/feed_options.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace shf {

namespace {

// How often our thread looks at the time.
constexpr long client_tick_ms = 50;
// A message is damaged on its way once in a long time, or a network damages all of them.
constexpr unsigned most_damaged = 10;
// Payload of a message: half of what may be asked for is as fast, and the first batch, for which
// messages of all lanes must be there, comes in two thirds of the time.
constexpr uint64_t wanted_block = largest_block / 2;
// Events of one lane that wait for the consumer or are under way.
constexpr uint64_t least_window = 2, most_window = 16;

std::string joined_addresses(std::span<const std::string> texts) {
    std::string all;
    for (const std::string& text : texts) all += (all.empty() ? "" : ", ") + escape(text);
    return all;
}

Error from_server(const Error& error, const std::string& address) {
    Fault fault = error.fault();
    if (fault.shard.empty()) fault.cause = address + ": " + fault.cause;
    return Error(std::move(fault));
}

}  // namespace

FeedClient::FeedClient(std::vector<std::string> addresses, const Options& options)
    : options_(options), options_text_(options_for_feed(options)), alone_since_(Clock::now()) {
    if (!options.feed_server_key.empty()) keys_ = CurveKeys::make();
    for (std::string& address : addresses) servers_.emplace_back().address = std::move(address);
    for (Server& server : servers_) connect(server);
    start_thread(threads_, "the feed", 1, [this] { run(); });
    try {
        std::unique_lock lock(mutex_);
        while (!welcome_ && !fault_) {
            changed_.wait_for(lock, std::chrono::milliseconds(5));
            Opening::check();
        }
        if (!welcome_) throw Error(*fault_);
    } catch (...) {
        join();
        throw;
    }
}

std::unique_ptr<SampleLane> FeedClient::lane(LaneContext& context, const LaneState& from) {
    return std::make_unique<FedLane>(context, from, [this] { bell_.ring(); });
}

void FeedClient::start(LaneContext& context, std::span<const std::unique_ptr<SampleLane>> lanes) {
    const std::lock_guard lock(mutex_);
    if (fault_) throw Error(*fault_);
    for (const auto& lane : lanes)
        new_lanes_.push_back({.lane = static_cast<FedLane*>(lane.get())});
    new_context_ = &context;
    started_ = true;
    bell_.ring();
}

void FeedClient::join() noexcept {
    stopping_ = true;
    bell_.ring();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
}

// ---- Our thread ---------------------------------------------------------------------------------

void FeedClient::run() noexcept {
    try {
        while (!stopping_) step();
    } catch (...) {
        fail(describe_exception());
        // The fault waits for the consumer.
    }
    leave_servers();
}

void FeedClient::step() {
    std::vector<FeedSocket*> sockets;
    for (const Server& server : servers_) {
        sockets.push_back(server.socket.get());
        sockets.push_back(server.losses.get());
    }
    wait_for_messages(sockets, bell_, client_tick_ms);
    if (stopping_) return;
    take_lanes();
    for (size_t number = 0; number < servers_.size(); ++number) receive(number);
    check_alive();
    assign();
    move_silent_lanes();
    give_credit();
}

// Those that the sequence has, once it starts.
void FeedClient::take_lanes() {
    const std::lock_guard lock(mutex_);
    if (!new_context_) return;
    lane_context_ = std::exchange(new_context_, nullptr);
    lanes_ = std::move(new_lanes_);
    reader_.emplace(pool_of(*lane_context_), lane_context_->cancel);
    const uint64_t share = options_.memory / std::max<uint64_t>(lanes_.size(), 1);
    constexpr uint64_t KiB = 1024;
    block_bytes_ = std::clamp<uint64_t>(share / 8, 16 * KiB, wanted_block);
    for (Lane& lane : lanes_)
        lane.patience =
            std::chrono::nanoseconds(std::max(options_.feed_wait, options_.feed_timeout));
    window_ = std::clamp<uint64_t>(share / 2 / block_bytes_, least_window, most_window);
}

// An allocator of the program is called inside its calls alone, and messages come at any time.
Pool& FeedClient::pool_of(const LaneContext& context) {
    if (!options_.alloc) return *context.pool;
    Options own = options_;
    own.alloc = nullptr;
    own.release = nullptr;
    pool_.reset(Pool::make(own));
    return *pool_;
}

void FeedClient::connect(Server& server) {
    server.disconnect();
    server.socket = std::make_unique<FeedSocket>(context_, ZMQ_DEALER);
    FeedSocket& socket = *server.socket;
    // What is under way is bounded by credit; a bound here would lose messages of ours.
    socket.set(ZMQ_SNDHWM, 0);
    socket.set(ZMQ_RCVHWM, 0);
    socket.set(ZMQ_LINGER, 0);
    if (server.address.find('[') != std::string::npos) socket.set(ZMQ_IPV6, 1);
    if (!options_.feed_server_key.empty()) {
        if (options_.feed_server_key.size() != 40)
            throw Error(SHF_E_USAGE, "feed_server_key is no key of CURVE",
                        "give the 40 characters of the server's public key");
        socket.set(ZMQ_CURVE_SERVERKEY, options_.feed_server_key);
        socket.set(ZMQ_CURVE_PUBLICKEY, keys_.public_key);
        socket.set(ZMQ_CURVE_SECRETKEY, keys_.secret_key);
    }
    server.losses = socket.watch(context_, ZMQ_EVENT_DISCONNECTED);
    server.state = Server::State::connecting;
    try {
        socket.connect("tcp://" + server.address.substr(feed_scheme.size()));
    } catch (const Error& error) {
        Fault fault = error.fault();
        fault.code = SHF_E_USAGE;
        fault.help = "give feed://HOST:PORT";
        throw Error(std::move(fault));
    }
    greet(server);
    server.heard = Clock::now();
}

void FeedClient::greet(Server& server) {
    FeedMessage message;
    message.emplace_back(encode(HelloFrame{options_.feed_token, options_text_}));
    server.socket->send(std::move(message));
    server.asked = Clock::now();
}

// The server is gone, or as good as gone.
void FeedClient::lose(size_t number) {
    for (Lane& lane : lanes_)
        if (lane.server == number) lane.server = nobody;
    connect(servers_[number]);
}

void FeedClient::leave_servers() noexcept {
    for (Server& server : servers_) {
        if (!server.socket) continue;
        try {
            FeedMessage message;
            message.emplace_back(encode_plain(FrameType::bye));
            server.socket->set(ZMQ_LINGER, 100);
            if (server.state != Server::State::connecting) server.socket->send(std::move(message));
        } catch (...) {
            // It will hear nothing of us for a while, and notice that.
        }
        server.disconnect();
    }
}

void FeedClient::check_alive() {
    const auto now = Clock::now();
    const std::chrono::nanoseconds silence(options_.feed_timeout);
    const std::chrono::nanoseconds pause =
        std::min<std::chrono::nanoseconds>(silence / 4, std::chrono::seconds(1));
    bool alone = true;
    for (size_t number = 0; number < servers_.size(); ++number) {
        Server& server = servers_[number];
        const bool connecting = server.state == Server::State::connecting;
        if (now - server.heard > silence) {
            lose(number);
            continue;
        }
        if (!connecting && now - server.asked > pause) {
            FeedMessage message;
            message.emplace_back(encode_plain(FrameType::ping));
            server.socket->send(std::move(message));
            server.asked = now;
        }
        alone = alone && connecting;
    }
    if (!alone) alone_since_ = now;
    if (now - alone_since_ < std::chrono::nanoseconds(options_.feed_wait)) return;
    std::vector<std::string> addresses;
    for (const Server& server : servers_) addresses.push_back(server.address);
    throw Error(SHF_E_NET_TRANSIENT,
                "no server of the feed answers: " + joined_addresses(addresses),
                "start shardfeed feed there, or raise feed_wait");
}

// Whoever waits gets the fault: the thread that opens, or the consumer of each lane.
void FeedClient::fail(const Fault& fault) {
    {
        const std::lock_guard lock(mutex_);
        fault_ = fault;
    }
    changed_.notify_all();
    take_lanes();
    if (!lane_context_) return;
    const std::lock_guard lock(lane_context_->mutex);
    for (Lane& lane : lanes_) {
        FedLane::Event event;
        event.fault = fault;
        lane.lane->push(std::move(event));
    }
}

// ---- Messages -----------------------------------------------------------------------------------

void FeedClient::receive(size_t number) {
    Server& server = servers_[number];
    FeedMessage message;
    while (server.socket->receive(message)) {
        server.heard = Clock::now();
        try {
            const std::span<const uint8_t> frame = message[0].bytes();
            const FrameType type = type_of(frame);
            switch (type) {
                case FrameType::welcome: receive_welcome(number, frame); break;
                case FrameType::refused: throw Error(decode_refused(frame));
                case FrameType::block:
                case FrameType::epoch_end:
                case FrameType::fault: receive_of_lane(number, type, message); break;
                case FrameType::drain:
                    server.state = Server::State::draining;
                    for (Lane& lane : lanes_)
                        if (lane.server == number) close(lane);
                    break;
                case FrameType::bye: return lose(number);  // it does not know us
                default: break;
            }
        } catch (const Error& error) {
            if (error.code() == SHF_E_INTEGRITY && ++damaged_ < most_damaged) return lose(number);
            throw from_server(error, server.address);
        }
    }
    bool lost = false;
    while (server.losses->receive(message)) lost = true;
    if (!lost) return;
    // What was asked of a server that went may be lost with it.
    if (server.state != Server::State::connecting)
        lose(number);
    else if (Clock::now() - server.asked > std::chrono::milliseconds(500))
        greet(server);
}

void FeedClient::receive_welcome(size_t number, std::span<const uint8_t> frame) {
    WelcomeFrame welcome = decode_welcome(frame);
    Server& server = servers_[number];
    {
        const std::lock_guard lock(mutex_);
        if (!welcome_) {
            welcome_ = std::move(welcome);
            changed_.notify_all();
        } else if (welcome.shards != welcome_->shards || welcome.rows != welcome_->rows ||
                   welcome.decode != welcome_->decode || welcome.counts != welcome_->counts) {
            throw Error(SHF_E_USAGE,
                        "it feeds other shards, or other columns, than the first server",
                        "start all servers of a feed with the same shards and the same decode");
        }
    }
    if (server.state != Server::State::connecting) return;
    server.state = Server::State::ready;
    // It may have been started again, with other shards.
    for (Lane& lane : lanes_) std::erase(lane.refused_by, number);
    rebalance();
}

FeedClient::Lane* FeedClient::lane_of(size_t server, uint64_t opening) {
    const auto place = std::find_if(lanes_.begin(), lanes_.end(), [&](const Lane& lane) {
        return lane.server == server && lane.opening == opening;
    });
    return place == lanes_.end() ? nullptr : &*place;
}

void FeedClient::receive_of_lane(size_t number, FrameType type, FeedMessage& message) {
    const std::span<const uint8_t> frame = message[0].bytes();
    FedLane::Event event;
    uint64_t opening = 0;
    if (type == FrameType::fault) {
        std::tie(opening, event.fault) = decode_fault_of_lane(frame);
    } else if (type == FrameType::epoch_end) {
        event.about = decode_epoch_end(frame);
        event.epoch_end = true;
        opening = event.about.opening;
    } else {
        if (message.size() != 2) throw_damaged_frame("has no payload");
        BlockFrame block = decode_block(frame);
        opening = block.opening;
        if (!lane_of(number, opening)) return;
        event.blocks = reader_->read(block, std::move(message[1]), lane_context_->part);
        event.about = std::move(static_cast<LaneFrame&>(block));
    }
    // Messages of a lane that is closed, or that another server reads now, are dropped.
    Lane* const lane = lane_of(number, opening);
    if (!lane) return;
    if (event.fault && event.fault->code == SHF_E_CHANGED)
        refuse(*lane, std::move(*event.fault));
    else
        deliver(*lane, std::move(event));
}

void FeedClient::deliver(Lane& lane, FedLane::Event event) {
    if (!event.fault && event.about.after.lane != lane.lane->number())
        throw_damaged_frame("is of another lane");
    ++lane.received;
    lane.silent_since = Clock::now();
    // Skips alone may come again and again: they leave the lane where it was.
    if (!event.blocks.empty() || event.epoch_end) {
        lane.refused_by.clear();
        lane.refusal.reset();
        lane.waits_since.reset();
    }
    lane.over = event.fault ||
                (event.epoch_end && !repeats_ && lane_context_->is_over(event.about.after.epoch));
    const std::lock_guard lock(lane_context_->mutex);
    lane.lane->push(std::move(event));
}

// Its server has another version of a shard that the lane was reading, or the file became another
// one there. The server that read it before, or another one, may have the right one.
void FeedClient::refuse(Lane& lane, Fault fault) {
    if (!lane.refusal) lane.refusal = std::move(fault);
    lane.refused_by.push_back(lane.server);
    close(lane);
}

// ---- Which server reads which lane --------------------------------------------------------------

size_t FeedClient::load_of(size_t server) const {
    return static_cast<size_t>(std::count_if(
        lanes_.begin(), lanes_.end(), [&](const Lane& lane) { return lane.server == server; }));
}

// For this lane, if any: one that does not read it, and may have its shards.
std::optional<size_t> FeedClient::freest_server(const Lane* for_lane) const {
    std::optional<size_t> freest;
    for (size_t number = 0; number < servers_.size(); ++number) {
        if (servers_[number].state != Server::State::ready) continue;
        if (for_lane && (number == for_lane->server || for_lane->is_refused_by(number))) continue;
        if (!freest || load_of(number) < load_of(*freest)) freest = number;
    }
    return freest;
}

void FeedClient::assign() {
    for (Lane& lane : lanes_) {
        if (lane.server != nobody || lane.over) continue;
        if (const std::optional<size_t> server = freest_server(&lane))
            open(lane, *server);
        else if (lane.refusal)
            wait_for_another(lane);
    }
}

// All servers that are there have refused the lane. The one that read it may only be silent for a
// moment.
void FeedClient::wait_for_another(Lane& lane) {
    const auto now = Clock::now();
    if (!lane.waits_since) lane.waits_since = now;
    if (lane.refused_by.size() < servers_.size() &&
        now - *lane.waits_since < std::chrono::nanoseconds(options_.feed_wait))
        return;
    FedLane::Event event;
    event.fault = std::move(lane.refusal);
    deliver(lane, std::move(event));
}

// A server has joined: it takes over lanes of those that have more than their share.
void FeedClient::rebalance() {
    for (;;) {
        const std::optional<size_t> freest = freest_server();
        if (!freest) return;
        auto busiest = lanes_.end();
        for (auto lane = lanes_.begin(); lane != lanes_.end(); ++lane)
            if (lane->server != nobody && !lane->is_refused_by(*freest) &&
                (busiest == lanes_.end() || load_of(lane->server) > load_of(busiest->server)))
                busiest = lane;
        if (busiest == lanes_.end() || load_of(busiest->server) <= load_of(*freest) + 1) return;
        close(*busiest);
        open(*busiest, *freest);
    }
}

// Moves lanes from a server that answers although its disk, or the store that it reads, does not.
// Such a server may also be filling a large shuffle buffer, which the next one has to fill again.
// So the lane waits twice as long before it moves once more.
void FeedClient::move_silent_lanes() {
    const auto now = Clock::now();
    for (Lane& lane : lanes_) {
        if (lane.server == nobody || lane.over || lane.granted <= lane.received ||
            now - lane.silent_since < lane.patience)
            continue;
        const std::optional<size_t> other = freest_server(&lane);
        if (!other) continue;
        close(lane);
        open(lane, *other);
        lane.patience *= 2;
    }
}

// Events of the lane, from its beginning. Few until the consumer has taken one: he waits for the
// first ones of all lanes, which come before the next ones of each.
uint64_t FeedClient::may_come(const Lane& lane) const {
    const uint64_t taken = lane.lane->taken();
    return taken == 0 ? least_window : taken + window_;
}

void FeedClient::open(Lane& lane, size_t server) {
    lane.server = server;
    lane.opening = ++openings_;
    lane.silent_since = Clock::now();
    lane.granted = std::max(may_come(lane), lane.received);
    OpenFrame frame{.opening = lane.opening,
                    .block_bytes = block_bytes_,
                    .credit = lane.granted - lane.received,
                    .epochs = repeats_ ? 0 : options_.epochs,
                    .from = {}};
    {
        const std::lock_guard lock(lane_context_->mutex);
        frame.from = lane.lane->received();
    }
    FeedMessage message;
    message.emplace_back(encode(frame));
    servers_[server].socket->send(std::move(message));
}

// Messages of it that are under way are dropped.
void FeedClient::close(Lane& lane) {
    FeedMessage message;
    message.emplace_back(encode_close(lane.opening));
    servers_[lane.server].socket->send(std::move(message));
    lane.server = nobody;
}

void FeedClient::give_credit() {
    for (Lane& lane : lanes_) {
        const uint64_t granted = may_come(lane);
        if (lane.server == nobody || granted <= lane.granted) continue;
        if (lane.granted <= lane.received) lane.silent_since = Clock::now();
        FeedMessage message;
        message.emplace_back(encode_credit(lane.opening, granted - lane.granted));
        servers_[lane.server].socket->send(std::move(message));
        lane.granted = granted;
    }
}

}  // namespace shf
