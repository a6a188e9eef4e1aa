#include "http/http_ranges.h"

#include "core/options.h"

#include <algorithm>
#include <array>
#include <utility>

namespace shf {

namespace {

constexpr uint64_t most_in_memory = 48 << 20, smallest_piece = 256 * 1024;
// A smaller object is not worth all connections: a request costs a round trip.
constexpr uint64_t least_of_object = 1 << 20;
// After so many bytes in a row the reader wants what follows too.
constexpr uint64_t enough_to_go_on = 128 * 1024;
// More connections help where one of them is slower than this, in bytes for each second. Bytes that
// come before they are wanted are copied once more: on a fast network that is slower.
constexpr uint64_t fast = 400 << 20;
constexpr uint64_t recently = 64 << 20;  // bytes

uint64_t ahead_limit(const Options& options) {
    return std::min(most_in_memory, options.memory / 4);
}

// Of `size` bytes: small enough for all connections to have one, where that is not too small.
uint64_t piece_size(const Options& options, uint64_t size) {
    if (options.connections <= 1) return UINT64_MAX;
    const uint64_t share = ahead_limit(options) / options.connections;
    const uint64_t most = std::max(std::min(options.range_size, share), smallest_piece);
    return std::min(most, std::max(size / options.connections + 1, least_of_object));
}

}  // namespace

HttpRanges::HttpRanges(std::shared_ptr<const HttpObject> object, uint64_t first, uint64_t end)
    : HttpRanges(std::move(object), first, end, false) {}

HttpRanges::HttpRanges(std::shared_ptr<const HttpObject> object, uint64_t first, uint64_t end,
                       bool listed)
    : object_(std::move(object)),
      server_(object_->server()),
      most_ahead_(ahead_limit(object_->context.options)),
      piece_size_(piece_size(object_->context.options, end - std::min(first, end))),
      listed_(listed),
      next_(first),
      end_(end),
      retry_(server_, object_->context) {
    plan(false);
}

HttpRanges::HttpRanges(std::shared_ptr<const HttpObject> object, std::span<const ByteRange> ranges)
    : HttpRanges(std::move(object), 0, 0, true) {
    const uint64_t size = *object_->size;
    for (const auto& [offset, count] : ranges) {
        if (offset >= size || count == 0) continue;
        const uint64_t end = offset + std::min(count, size - offset);
        Piece* const last = pieces_.empty() ? nullptr : &pieces_.back();
        if (last && offset >= last->at && offset <= last->end + network_gap &&
            end - last->at <= std::max(network_at_once, last->end - last->at))
            last->end = std::max(last->end, end);
        else
            pieces_.push_back({.at = offset, .end = end});
    }
}

HttpRanges::~HttpRanges() {
    while (!pieces_.empty()) drop_front();
}

uint64_t HttpRanges::at() const {
    return pieces_.empty() ? *object_->size : pieces_.front().at;
}

bool HttpRanges::ready() const {
    return !pieces_.empty() && pieces_.front().exchange && pieces_.front().exchange->ready();
}

bool HttpRanges::wants_more() const {
    if (listed_) return true;
    std::atomic<bool>& slow = object_->context.use.slow_network;
    if (read_ < enough_to_go_on) return slow.load(std::memory_order_relaxed);
    const auto microseconds = static_cast<uint64_t>(waited_.count() / 1000);
    const bool more = read_ / (microseconds + 1) < fast / 1'000'000;
    slow.store(more, std::memory_order_relaxed);
    return more;
}

void HttpRanges::plan(bool ahead) {
    const uint64_t most = ahead ? retry_.connections() : 1;
    while (next_ < end_ && pieces_.size() < most) {
        // Where one connection is enough, it is asked seldom.
        const uint64_t size = ahead || read_ < enough_to_go_on ? piece_size_ : recently;
        const uint64_t end = next_ + std::min(std::max(size, piece_size_), end_ - next_);
        pieces_.push_back({.at = next_, .end = end});
        next_ = end;
    }
}

// A child's reads must not go over connections of its parent.
void HttpRanges::leave_parent() {
    if (!client_ || client_->is_ours()) return;
    for (Piece& piece : pieces_) {
        piece.exchange.reset();
        piece.checked = false;
    }
    client_.reset();
}

bool HttpRanges::reserve(Piece& piece) {
    if (piece.reserved > 0) return true;  // it was sent before
    const uint64_t size = piece.end - piece.at;
    std::atomic<uint64_t>& used = object_->context.use.ahead_bytes;
    uint64_t before = used.load(std::memory_order_relaxed);
    do {
        if (size > most_ahead_ || before > most_ahead_ - size) return false;
    } while (!used.compare_exchange_weak(before, before + size, std::memory_order_relaxed));
    piece.reserved = size;
    return true;
}

void HttpRanges::drop_front() {
    Piece& front = pieces_.front();
    object_->context.use.ahead_bytes -= front.reserved;
    pieces_.pop_front();
}

void HttpRanges::take_client() {
    if (!client_) client_.reset(HttpClient::take(server_).release());
}

void HttpRanges::send(Piece& piece, size_t ahead) {
    take_client();
    retry_.before_request();
    piece.checked = false;
    piece.exchange = object_->ask(*client_, piece.at, piece.end, ahead, again_);
}

// Sends what is to be on its way: the front, and with `ahead` more.
void HttpRanges::fill(bool ahead) {
    plan(ahead);
    const uint64_t most = retry_.connections();
    size_t count = 0;
    for (Piece& piece : pieces_) {
        if (count++ >= most && count > 1) break;
        if (piece.exchange) continue;
        const bool front = &piece == &pieces_.front();
        if (!front && (!ahead || !reserve(piece))) break;
        try {
            send(piece, front ? 0 : static_cast<size_t>(piece.end - piece.at));
        } catch (const Error&) {
            if (front) throw;
            break;  // it is sent again when it is in front
        }
        if (front && ahead) client_->drive();
    }
}

size_t HttpRanges::read_front(std::span<uint8_t> out) {
    fill(wants_more());
    Piece& front = pieces_.front();
    if (!front.checked) {
        object_->check(front.exchange->answer(), front.at);
        object_->places.set(front.exchange->moved_to());
        front.checked = true;
    }
    const uint64_t left = front.end - front.at;
    const size_t count =
        front.exchange->read(out.first(static_cast<size_t>(std::min<uint64_t>(out.size(), left))));
    if (count == 0) throw answer_cut_off();
    front.at += count;
    return count;
}

size_t HttpRanges::read(std::span<uint8_t> out) {
    if (out.empty()) return 0;
    leave_parent();
    for (;;) {
        plan(wants_more());
        if (pieces_.empty()) return 0;
        const auto start = Clock::now();
        try {
            const size_t count = read_front(out);
            retry_.progressed();
            again_ = false;
            waited_ += Clock::now() - start;
            read_ += count;
            if (read_ > recently) {
                read_ /= 2;
                waited_ /= 2;
            }
            if (Piece& front = pieces_.front(); front.at == front.end) {
                front.exchange->finish();
                retry_.succeeded();
                drop_front();
            }
            return count;
        } catch (const Error& error) {
            Piece& front = pieces_.front();
            const auto pause = front.exchange ? front.exchange->pause() : std::nullopt;
            front.exchange.reset();
            again_ = true;
            retry_.after(error, pause);
        }
    }
}

bool HttpRanges::seek(uint64_t offset, uint64_t size) {
    size_t found = 0;
    while (found < pieces_.size() && (pieces_[found].at > offset || pieces_[found].end < offset ||
                                      pieces_[found].end - offset < size))
        ++found;
    if (found == pieces_.size()) return false;
    for (; found > 0; --found) drop_front();
    std::array<uint8_t, 16 * 1024> unwanted;
    while (pieces_.front().at < offset)
        (void)read(std::span(unwanted).first(
            static_cast<size_t>(std::min<uint64_t>(unwanted.size(), offset - pieces_.front().at))));
    return true;
}

}  // namespace shf
