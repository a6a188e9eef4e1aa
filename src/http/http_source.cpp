#include "http/http_source.h"

#include "core/cancel.h"
#include "core/error.h"
#include "core/options.h"
#include "http/http_retry.h"
#include "http/http_transfer.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

namespace shf {

namespace {

// Of the first request: the start of a tar with its first samples, or the whole of a small object.
constexpr uint64_t head_size = 64 * 1024;
constexpr ReadCost network_cost{.gap = 256 * 1024, .at_once = 4 * 1024 * 1024};

// What all requests for one object share. Does not change after it was made.
struct HttpObject {
    std::string url;
    const Options& options;
    const Cancel& cancel;
    HttpAnswer first;  // as the first answer said
    std::optional<uint64_t> size;
    std::vector<uint8_t> head;  // the first bytes; of an object without ranges none
    bool ranges = false;        // parts of it can be asked for and joined

    // Fills `out` from `offset` on as far as the head goes. Returns the count.
    size_t copy_head(uint64_t offset, std::span<uint8_t> out) const {
        if (offset >= head.size()) return 0;
        const auto from = std::span(head).subspan(static_cast<size_t>(offset));
        const size_t count = std::min(out.size(), from.size());
        std::copy_n(from.begin(), count, out.begin());
        return count;
    }
};

Error cut_off() {
    return Error(SHF_E_NET_TRANSIENT, "the server ends the answer too early",
                 "look at the network, or try again later");
}
Error no_ranges() {
    return Error(SHF_E_USAGE, "the server gives no byte ranges of this object",
                 "copy it to a local disk");
}

// They are never asked for (H10).
void refuse_several(const HttpAnswer& answer) {
    if (answer.content_type.starts_with("multipart/"))
        throw Error(SHF_E_NET_PERMANENT, "the server answers with several ranges",
                    "copy the shard to a local disk");
}

// The answer to a request for a range is the range, of the version that was opened. Throws Error.
void check_range(const HttpAnswer& answer, uint64_t first, const HttpObject& object) {
    if (answer.status >= 300) throw answer.error();
    if (answer.status != 206 || !answer.range || answer.range->unsatisfied)
        throw Error(SHF_E_NET_PERMANENT,
                    "the server gave byte ranges before and now answers " +
                        std::to_string(answer.status) + " to the request for one",
                    "copy the shard to a local disk");
    refuse_several(answer);
    if (answer.range->first != first)
        throw Error(SHF_E_NET_PERMANENT,
                    "the server gives the bytes from " + std::to_string(answer.range->first) +
                        " on instead of those from " + std::to_string(first) + " on",
                    "copy the shard to a local disk");
    if (answer.etag != object.first.etag) throw object_changed();
    if (answer.range->total && answer.range->total != object.size) throw object_changed();
}

// A body that is read to its end however often the connection ends before.
class HttpBody {
  public:
    // The bytes [first, end) of an object with ranges.
    HttpBody(std::shared_ptr<const HttpObject> object, uint64_t first, uint64_t end)
        : object_(std::move(object)),
          at_(first),
          end_(end),
          retry_(server_of(object_->url), object_->options, object_->cancel) {}

    [[nodiscard]] uint64_t at() const { return at_; }
    [[nodiscard]] uint64_t end() const { return end_; }

    size_t read(std::span<uint8_t> out) {
        out = out.first(static_cast<size_t>(std::min<uint64_t>(out.size(), end_ - at_)));
        while (!out.empty()) {
            std::optional<uint64_t> pause;
            try {
                if (transfer_ && !transfer_->is_ours()) transfer_.reset();
                if (!transfer_) request(pause);
                const size_t count = transfer_->read(out);
                if (count == 0) throw cut_off();
                at_ += count;
                retry_.progressed();
                if (at_ == end_) std::exchange(transfer_, nullptr)->finish();
                return count;
            } catch (const Error& error) {
                transfer_.reset();
                retry_.after(error, pause);
            }
        }
        return 0;
    }

  private:
    void request(std::optional<uint64_t>& pause) {
        retry_.before_request();
        auto transfer = std::make_unique<HttpTransfer>(
            HttpRequest{.url = object_->url,
                        .first = at_,
                        .last = end_ - 1,
                        .if_match = std::string(object_->first.strong_tag())},
            object_->options, object_->cancel);
        pause = transfer->answer().pause();
        check_range(transfer->answer(), at_, *object_);
        transfer_ = std::move(transfer);
    }

    const std::shared_ptr<const HttpObject> object_;
    uint64_t at_;
    const uint64_t end_;
    HttpRetry retry_;
    std::unique_ptr<HttpTransfer> transfer_;
};

// From front to back, of an object with ranges.
class RangedSequential final : public Sequential {
  public:
    RangedSequential(std::shared_ptr<const HttpObject> object, uint64_t offset)
        : object_(std::move(object)), at_(offset) {}

    size_t read(std::span<uint8_t> out) override {
        if (at_ >= *object_->size) return 0;
        size_t count = object_->copy_head(at_, out);
        if (count == 0) {
            if (!body_) body_.emplace(object_, at_, *object_->size);
            count = body_->read(out);
        }
        at_ += count;
        return count;
    }
    // Another request costs more than to read a little.
    bool skip(uint64_t size) override {
        if ((body_ && size < network_cost.at_once) || size > *object_->size - at_) return false;
        at_ += size;
        body_.reset();
        return true;
    }
    bool ready() override { return at_ < object_->head.size(); }

  private:
    const std::shared_ptr<const HttpObject> object_;
    uint64_t at_;
    std::optional<HttpBody> body_;
};

// From front to back, of an object whose parts must not be joined (H8): after a fault it is read
// again from its start, and what was delivered is compared.
class WholeSequential final : public Sequential {
  public:
    WholeSequential(std::shared_ptr<const HttpObject> object, std::unique_ptr<HttpTransfer> first)
        : object_(std::move(object)),
          transfer_(std::move(first)),
          retry_(server_of(object_->url), object_->options, object_->cancel),
          seen_(XXH3_createState()) {
        if (!seen_) throw std::bad_alloc();
        XXH3_128bits_reset(seen_.get());
    }

    size_t read(std::span<uint8_t> out) override {
        while (!over_) {
            std::optional<uint64_t> pause;
            try {
                if (transfer_ && !transfer_->is_ours()) transfer_.reset();
                if (!transfer_) start_again(pause);
                const size_t count = transfer_->read(out);
                if (count == 0) {
                    if (transfer_->answer().length.value_or(at_) != at_) throw cut_off();
                    over_ = true;
                    return 0;
                }
                XXH3_128bits_update(seen_.get(), out.data(), count);
                at_ += count;
                retry_.progressed();
                return count;
            } catch (const Error& error) {
                transfer_.reset();
                retry_.after(error, pause);
            }
        }
        return 0;
    }
    bool ready() override { return false; }

  private:
    struct FreeState {
        void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
    };

    void start_again(std::optional<uint64_t>& pause) {
        retry_.before_request();
        auto transfer = std::make_unique<HttpTransfer>(
            HttpRequest{.url = object_->url, .last = {}, .whole = true, .if_match = {}},
            object_->options, object_->cancel);
        const HttpAnswer& answer = transfer->answer();
        pause = answer.pause();
        if (answer.status != 200) throw answer.error();
        const bool other_size = answer.length && object_->size && *answer.length != *object_->size;
        if (answer.etag != object_->first.etag || other_size) throw object_changed();
        // The bytes that were delivered must be these.
        const std::unique_ptr<XXH3_state_t, FreeState> again(XXH3_createState());
        if (!again) throw std::bad_alloc();
        XXH3_128bits_reset(again.get());
        std::vector<uint8_t> piece(64 * 1024);
        for (uint64_t left = at_; left > 0;) {
            const size_t count = transfer->read(std::span(piece).first(
                static_cast<size_t>(std::min<uint64_t>(left, piece.size()))));
            if (count == 0) throw object_changed();
            XXH3_128bits_update(again.get(), piece.data(), count);
            left -= count;
        }
        if (!XXH128_isEqual(XXH3_128bits_digest(again.get()), XXH3_128bits_digest(seen_.get())))
            throw object_changed();
        transfer_ = std::move(transfer);
    }

    const std::shared_ptr<const HttpObject> object_;
    std::unique_ptr<HttpTransfer> transfer_;
    HttpRetry retry_;
    const std::unique_ptr<XXH3_state_t, FreeState> seen_;
    uint64_t at_ = 0;
    bool over_ = false;
};

class HttpSource final : public Source {
  public:
    HttpSource(std::shared_ptr<const HttpObject> object, std::unique_ptr<HttpTransfer> whole)
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
                .version = object_->first.etag};
    }
    [[nodiscard]] ReadCost read_cost() const override { return network_cost; }
    [[nodiscard]] bool seekable() const override { return object_->ranges; }

    // The first range is asked for as a whole when its first byte is wanted.
    void prefetch(std::span<const ByteRange> ranges) override {
        if (!object_->ranges || ranges.empty()) return;
        const auto [offset, size] = ranges.front();
        if (offset < *object_->size && size > 0)
            keep(std::make_unique<HttpBody>(object_, offset,
                                            offset + std::min(size, *object_->size - offset)));
    }

    size_t read(uint64_t offset, std::span<uint8_t> out) override {
        if (!object_->ranges) throw no_ranges();
        const uint64_t size = *object_->size;
        if (offset >= size) return 0;
        out = out.first(static_cast<size_t>(std::min<uint64_t>(out.size(), size - offset)));
        size_t done = object_->copy_head(offset, out);
        if (done == out.size()) return done;
        std::unique_ptr<HttpBody> body = body_at(offset + done, out.size() - done);
        while (done < out.size()) done += body->read(out.subspan(done));
        keep(std::move(body));
        return done;
    }

    std::unique_ptr<Sequential> open_sequential(uint64_t offset) override {
        if (object_->ranges) return std::make_unique<RangedSequential>(object_, offset);
        if (offset > 0) throw no_ranges();
        return std::make_unique<WholeSequential>(
            object_, std::unique_ptr<HttpTransfer>(whole_.exchange(nullptr)));
    }

  private:
    std::unique_ptr<HttpBody> body_at(uint64_t offset, uint64_t size) {
        std::unique_ptr<HttpBody> rest(rest_.exchange(nullptr));
        if (rest && rest->at() == offset && rest->end() - offset >= size) return rest;
        return std::make_unique<HttpBody>(object_, offset, offset + size);
    }
    void keep(std::unique_ptr<HttpBody> body) {
        if (body->at() < body->end()) body.reset(rest_.exchange(body.release()));
    }

    // No locks: forked children read too.
    const std::shared_ptr<const HttpObject> object_;
    std::atomic<HttpTransfer*> whole_;      // of an object without ranges: the first answer
    std::atomic<HttpBody*> rest_{nullptr};  // of a range that was asked for and not read to its end
};

// Reads the first answer, when it is a range from the start of the object. Says in `object` what is
// known by it.
void take_head(HttpTransfer& transfer, HttpObject& object) {
    const HttpAnswer& answer = transfer.answer();
    refuse_several(answer);
    if (!answer.range || answer.range->unsatisfied || answer.range->first != 0 || !object.size)
        throw Error(SHF_E_NET_PERMANENT, "the server answers with a range that it does not name",
                    "copy the shard to a local disk");
    const uint64_t count = std::min(*object.size, answer.range->last + 1);
    if (count > head_size)
        throw Error(SHF_E_NET_PERMANENT, "the server gives more bytes than were asked for",
                    "copy the shard to a local disk");
    std::vector<uint8_t> head(static_cast<size_t>(count));
    for (size_t done = 0; done < head.size();) {
        const size_t more = transfer.read(std::span(head).subspan(done));
        if (more == 0) throw cut_off();
        done += more;
    }
    transfer.finish();
    object.ranges = !answer.strong_tag().empty() || count == *object.size;
    if (object.ranges) object.head = std::move(head);
}

}  // namespace

std::unique_ptr<Source> http_source(const std::string& url, const Options& options,
                                    const Cancel& cancel) {
    auto object = std::make_shared<HttpObject>(HttpObject{url, options, cancel, {}, {}, {}, false});
    HttpRetry retry(server_of(url), options, cancel);
    for (;;) {
        std::optional<uint64_t> pause;
        try {
            retry.before_request();
            auto transfer = std::make_unique<HttpTransfer>(
                HttpRequest{.url = url, .first = 0, .last = head_size - 1, .if_match = {}}, options,
                cancel);
            const HttpAnswer& answer = transfer->answer();
            pause = answer.pause();
            object->first = answer;
            object->size = answer.total();
            // Of an empty object there is no range (RFC 9110, 15.5.17).
            const bool empty = answer.status == 416 && answer.total() == 0U;
            if (answer.status != 200 && answer.status != 206 && !empty) throw answer.error();
            if (empty) object->ranges = true;
            if (answer.status == 206) take_head(*transfer, *object);
            if (answer.status != 200) transfer.reset();
            return std::make_unique<HttpSource>(std::move(object), std::move(transfer));
        } catch (const Error& error) {
            retry.after(error, pause);
        }
    }
}

}  // namespace shf
