#include "http/http_source.h"

#include "core/cancel.h"
#include "core/error.h"
#include "core/options.h"
#include "http/http_object.h"
#include "http/http_ranges.h"
#include "http/http_retry.h"
#include "http/object_check.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>
#include <vector>

namespace shf {

namespace {

// Of the first request: the start of a tar with its first samples, or the whole of a small object.
constexpr uint64_t head_size = 64 * 1024;

// A range has one byte at least, and servers differ in what else names the size.
uint64_t head_size_of(const SourceContext& context) {
    return context.brief ? 1 : head_size;
}

Error no_ranges() {
    return Error(SHF_E_USAGE, "the server gives no byte ranges of this object",
                 "copy it to a local disk");
}

// The answer with the whole object, and the client that it comes by.
struct WholeAnswer {
    TakenHttpClient client;
    std::unique_ptr<HttpExchange> exchange;  // goes before the client
};

std::unique_ptr<WholeAnswer> ask_whole(HttpStore& store, const std::string& target,
                                       const SourceContext& context, bool head) {
    HttpRequest request;
    request.target = target;
    request.digest = context.options.checksums != Checksums::none;
    if (head) {
        request.whole = false;
        request.last = head_size_of(context) - 1;
    }
    auto whole = std::make_unique<WholeAnswer>();
    whole->client.reset(HttpClient::take(store.server(request)).release());
    whole->exchange = std::make_unique<HttpExchange>(*whole->client, request, store, context);
    return whole;
}

// From front to back, of an object with ranges.
class RangedSequential final : public Sequential {
  public:
    RangedSequential(std::shared_ptr<const HttpObject> object, uint64_t offset)
        : object_(std::move(object)), at_(offset) {
        if (offset == 0) check_.emplace(object_, object_->first);
    }

    size_t read(std::span<uint8_t> out) override {
        if (at_ >= *object_->size) return 0;
        size_t count = object_->copy_head(at_, out);
        if (count == 0) {
            if (!rest_) begin_rest();
            count = rest_->read(out);
            if (check_) check_->add(out.first(count));
        }
        at_ += count;
        return count;
    }
    // Another request costs more than to read a little.
    bool skip(uint64_t size) override {
        if ((rest_ && size < network_at_once) || size > *object_->size - at_) return false;
        at_ += size;
        rest_.reset();
        check_.reset();
        return true;
    }
    bool ready() override { return at_ < object_->head.size() || (rest_ && rest_->ready()); }
    void finish() override {
        if (!check_ || at_ < *object_->size) return;
        if (!rest_) check_->add(object_->head);
        check_->finish();
    }

  private:
    void begin_rest() {
        rest_.emplace(object_, at_, *object_->size);
        if (!check_) return;
        // The connection that is open already is for the bytes.
        rest_->take_client();
        check_->ask();
        check_->add(object_->head);
    }

    const std::shared_ptr<const HttpObject> object_;
    uint64_t at_;
    std::optional<HttpRanges> rest_;
    std::optional<ObjectCheck> check_;  // none once something is left out
};

// Waits for the answer. `pause`: how long the server asks to wait.
const HttpAnswer& answer_of(HttpExchange& exchange, std::optional<uint64_t>& pause) {
    try {
        return exchange.answer();
    } catch (const Error&) {
        pause = exchange.pause();
        throw;
    }
}

// From front to back, of an object whose parts must not be joined (H8): after a fault it is read
// again from its start, and what was delivered is compared.
class WholeSequential final : public Sequential {
  public:
    WholeSequential(std::shared_ptr<const HttpObject> object, std::unique_ptr<WholeAnswer> first)
        : object_(std::move(object)),
          answer_(std::move(first)),
          retry_(object_->server(), object_->context),
          seen_(XXH3_createState()) {
        if (!seen_) throw std::bad_alloc();
        XXH3_128bits_reset(seen_.get());
        check_.emplace(object_, object_->first);
    }

    size_t read(std::span<uint8_t> out) override {
        while (!over_) {
            std::optional<uint64_t> pause;
            try {
                if (answer_ && !answer_->client->is_ours()) answer_.reset();
                if (!answer_) start_again(pause);
                const size_t count = answer_->exchange->read(out);
                if (count == 0) {
                    if (answer_->exchange->answer().length.value_or(at_) != at_)
                        throw answer_cut_off();
                    over_ = true;
                    return 0;
                }
                XXH3_128bits_update(seen_.get(), out.data(), count);
                check_->add(out.first(count));
                at_ += count;
                retry_.progressed();
                return count;
            } catch (const Error& error) {
                answer_.reset();
                retry_.after(error, pause);
            }
        }
        return 0;
    }
    bool ready() override { return answer_ && answer_->exchange->ready(); }
    void finish() override {
        if (over_) check_->finish();
    }

  private:
    struct FreeState {
        void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
    };

    void start_again(std::optional<uint64_t>& pause) {
        retry_.before_request();
        std::unique_ptr<WholeAnswer> whole =
            ask_whole(*object_->store, object_->target, object_->context, false);
        HttpExchange& exchange = *whole->exchange;
        const HttpAnswer& answer = answer_of(exchange, pause);
        if (answer.status != 200) throw object_->store->error(answer, {});
        const bool other_size = answer.length && object_->size && *answer.length != *object_->size;
        const HttpStore& store = *object_->store;
        if (store.version(answer) != store.version(object_->first) || other_size)
            throw object_changed();
        // The bytes that were delivered must be these.
        const std::unique_ptr<XXH3_state_t, FreeState> again(XXH3_createState());
        if (!again) throw std::bad_alloc();
        XXH3_128bits_reset(again.get());
        std::vector<uint8_t> piece(64 * 1024);
        for (uint64_t left = at_; left > 0;) {
            const size_t count = exchange.read(std::span(piece).first(
                static_cast<size_t>(std::min<uint64_t>(left, piece.size()))));
            if (count == 0) throw object_changed();
            XXH3_128bits_update(again.get(), piece.data(), count);
            left -= count;
        }
        if (!XXH128_isEqual(XXH3_128bits_digest(again.get()), XXH3_128bits_digest(seen_.get())))
            throw object_changed();
        // The first answer may have had the start of the object alone.
        if (at_ == 0) check_.emplace(object_, answer);
        answer_ = std::move(whole);
    }

    const std::shared_ptr<const HttpObject> object_;
    std::unique_ptr<WholeAnswer> answer_;
    HttpRetry retry_;
    std::optional<ObjectCheck> check_;
    const std::unique_ptr<XXH3_state_t, FreeState> seen_;
    uint64_t at_ = 0;
    bool over_ = false;
};

class HttpSource final : public Source {
  public:
    HttpSource(std::shared_ptr<const HttpObject> object, std::unique_ptr<WholeAnswer> whole)
        : object_(std::move(object)), whole_(whole.release()) {}
    ~HttpSource() override {
        delete whole_.load();
        delete rest_.load();
    }
    HttpSource(const HttpSource&) = delete;
    HttpSource& operator=(const HttpSource&) = delete;

    [[nodiscard]] std::optional<uint64_t> size() const override { return object_->size; }
    [[nodiscard]] Identity identity() const override {
        return {.size = object_->size,
                .modified = object_->first.modified,
                .tag = {},
                .version = object_->store->version(object_->first)};
    }
    [[nodiscard]] ReadCost read_cost() const override {
        return {.gap = network_gap,
                .at_once = network_at_once,
                .parallel = static_cast<unsigned>(object_->context.options.connections)};
    }
    [[nodiscard]] bool seekable() const override { return object_->ranges; }
    [[nodiscard]] uint64_t at_hand() const override { return object_->head.size(); }

    void prefetch(std::span<const ByteRange> ranges) override {
        if (!object_->ranges || ranges.empty()) return;
        auto rest = std::make_unique<HttpRanges>(object_, ranges);
        rest->begin();
        keep(std::move(rest));
    }

    size_t read(uint64_t offset, std::span<uint8_t> out) override {
        return read_scattered(offset, {&out, 1});
    }
    size_t read_scattered(uint64_t offset, std::span<const std::span<uint8_t>> parts) override {
        if (!object_->ranges) throw no_ranges();
        uint64_t wanted = 0;
        for (const std::span<uint8_t> part : parts) wanted += part.size();
        if (offset >= *object_->size) return 0;
        wanted = std::min(wanted, *object_->size - offset);
        const uint64_t end = offset + wanted;
        std::unique_ptr<HttpRanges> rest;
        for (std::span<uint8_t> part : parts) {
            while (!part.empty() && offset < end) {
                if (part.size() > end - offset)
                    part = part.first(static_cast<size_t>(end - offset));
                size_t count = object_->copy_head(offset, part);
                if (count == 0) {
                    if (!rest) rest = ranges_from(offset, end);
                    count = rest->read(part);
                }
                offset += count;
                part = part.subspan(count);
            }
        }
        if (rest) keep(std::move(rest));
        return static_cast<size_t>(wanted);
    }

    std::unique_ptr<Sequential> open_sequential(uint64_t offset) override {
        if (object_->ranges) return std::make_unique<RangedSequential>(object_, offset);
        if (offset > 0) throw no_ranges();
        return std::make_unique<WholeSequential>(
            object_, std::unique_ptr<WholeAnswer>(whole_.exchange(nullptr)));
    }

  private:
    std::unique_ptr<HttpRanges> ranges_from(uint64_t offset, uint64_t end) {
        std::unique_ptr<HttpRanges> rest(rest_.exchange(nullptr));
        if (rest && rest->seek(offset, end - offset)) return rest;
        if (rest) keep(std::move(rest));
        return std::make_unique<HttpRanges>(object_, offset, end);
    }
    void keep(std::unique_ptr<HttpRanges> rest) {
        if (rest->at() < *object_->size) rest.reset(rest_.exchange(rest.release()));
    }

    // No locks: forked children read too.
    const std::shared_ptr<const HttpObject> object_;
    std::atomic<WholeAnswer*> whole_;         // of an object without ranges: the first answer
    std::atomic<HttpRanges*> rest_{nullptr};  // asked for and not read to the end
};

// Reads the first answer, when it is a range from the start of the object. Says in `object` what is
// known by it.
void take_head(HttpExchange& exchange, HttpObject& object) {
    const HttpAnswer& answer = exchange.answer();
    refuse_several(answer);
    if (answer.range && !answer.range->unsatisfied && !answer.range->total)
        throw Error(SHF_E_NET_PERMANENT, "the server does not say how large the object is",
                    "copy the shard to a local disk");
    if (!answer.range || answer.range->unsatisfied || answer.range->first != 0 || !object.size)
        throw Error(SHF_E_NET_PERMANENT, "the server answers with a range that it does not name",
                    "copy the shard to a local disk");
    const uint64_t count = std::min(*object.size, answer.range->last + 1);
    if (count > head_size_of(object.context))
        throw Error(SHF_E_NET_PERMANENT, "the server gives more bytes than were asked for",
                    "copy the shard to a local disk");
    std::vector<uint8_t> head(static_cast<size_t>(count));
    for (size_t done = 0; done < head.size();) {
        const size_t more = exchange.read(std::span(head).subspan(done));
        if (more == 0) throw answer_cut_off();
        done += more;
    }
    exchange.finish();
    object.ranges = object.store->pins(answer) || count == *object.size;
    if (object.ranges) object.head = std::move(head);
}

}  // namespace

std::unique_ptr<Source> http_source(std::shared_ptr<HttpStore> store, std::string target,
                                    const SourceContext& context) {
    auto object = std::make_shared<HttpObject>(std::move(store), std::move(target), context);
    HttpRetry retry(object->server(), context);
    bool head = true;
    for (;;) {
        std::optional<uint64_t> pause;
        try {
            retry.before_request();
            std::unique_ptr<WholeAnswer> whole =
                ask_whole(*object->store, object->target, context, head);
            const HttpAnswer& answer = answer_of(*whole->exchange, pause);
            object->places.set(whole->exchange->moved_to());
            object->first = answer;
            object->size = answer.total();
            // Of an empty object there is no range (RFC 9110, 15.5.17); not all servers say so.
            const bool empty = answer.status == 416 && answer.total() == 0U;
            const bool nothing = answer.status == 206 && !answer.range && answer.length == 0U;
            if (((answer.status == 416 && !answer.range) || nothing) && std::exchange(head, false))
                continue;
            if (answer.status != 200 && answer.status != 206 && !empty)
                throw object->store->error(answer, {});
            if (empty) object->ranges = true;
            if (answer.status == 206) take_head(*whole->exchange, *object);
            if (answer.status != 200) whole.reset();
            return std::make_unique<HttpSource>(std::move(object), std::move(whole));
        } catch (const Error& error) {
            retry.after(error, pause);
        }
    }
}

}  // namespace shf
