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

    [[nodiscard]] std::string server() const {
        return url.substr(0, url.find_first_of("/?#", url.find("://") + 3));
    }
};

Error changed() {
    return Error(SHF_E_CHANGED, "the object became another version while it was read",
                 "write new shards under new names");
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
    if (answer.etag != object.first.etag) throw changed();
    if (answer.range->total && answer.range->total != object.size) throw changed();
}

// A body that is read to its end however often the connection ends before.
class HttpBody {
  public:
    // The bytes [first, end) of an object with ranges.
    HttpBody(std::shared_ptr<const HttpObject> object, uint64_t first, uint64_t end)
        : object_(std::move(object)),
          at_(first),
          end_(end),
          retry_(object_->server(), object_->options, object_->cancel) {}

    [[nodiscard]] uint64_t at() const { return at_; }
    [[nodiscard]] uint64_t end() const { return end_; }

    size_t read(std::span<uint8_t> out) {
        out = out.first(static_cast<size_t>(std::min<uint64_t>(out.size(), end_ - at_)));
        while (!out.empty()) {
            std::optional<uint64_t> pause;
            try {
                if (!transfer_) request(pause);
                const size_t count = transfer_->read(out);
                if (count == 0)
                    throw Error(
                        SHF_E_NET_TRANSIENT,
                        "the server ends the answer " + plural(end_ - at_, "byte") + " too early",
                        "look at the network, or try again later");
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
        const auto& head = object_->head;
        if (at_ < head.size()) {
            const size_t count =
                std::min<size_t>(out.size(), head.size() - static_cast<size_t>(at_));
            std::copy_n(head.begin() + static_cast<ptrdiff_t>(at_), count, out.begin());
            at_ += count;
            return count;
        }
        if (at_ >= *object_->size) return 0;
        if (!body_) body_.emplace(object_, at_, *object_->size);
        const size_t count = body_->read(out);
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
          retry_(object_->server(), object_->options, object_->cancel),
          seen_(XXH3_createState()) {
        if (!seen_) throw std::bad_alloc();
        XXH3_128bits_reset(seen_.get());
    }

    size_t read(std::span<uint8_t> out) override {
        while (!over_) {
            std::optional<uint64_t> pause;
            try {
                if (!transfer_) start_again(pause);
                const size_t count = transfer_->read(out);
                if (count == 0) {
                    const std::optional<uint64_t> size = transfer_->answer().length;
                    if (size && *size != at_)
                        throw Error(SHF_E_NET_TRANSIENT, "the server ends the answer too early",
                                    "look at the network, or try again later");
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
        if (answer.etag != object_->first.etag || other_size) throw changed();
        // The bytes that were delivered must be these.
        const std::unique_ptr<XXH3_state_t, FreeState> again(XXH3_createState());
        if (!again) throw std::bad_alloc();
        XXH3_128bits_reset(again.get());
        std::vector<uint8_t> piece(64 * 1024);
        for (uint64_t left = at_; left > 0;) {
            const size_t count = transfer->read(std::span(piece).first(
                static_cast<size_t>(std::min<uint64_t>(left, piece.size()))));
            if (count == 0) throw changed();
            XXH3_128bits_update(again.get(), piece.data(), count);
            left -= count;
        }
        if (!XXH128_isEqual(XXH3_128bits_digest(again.get()), XXH3_128bits_digest(seen_.get())))
            throw changed();
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
        if (!object_->ranges)
            throw Error(SHF_E_USAGE, "the server gives no byte ranges of this object",
                        "copy it to a local disk");
        const uint64_t size = *object_->size;
        if (offset >= size) return 0;
        out = out.first(static_cast<size_t>(std::min<uint64_t>(out.size(), size - offset)));
        const auto& head = object_->head;
        size_t done = 0;
        if (offset < head.size()) {
            done = std::min<size_t>(out.size(), head.size() - static_cast<size_t>(offset));
            std::copy_n(head.begin() + static_cast<ptrdiff_t>(offset), done, out.begin());
        }
        if (done == out.size()) return done;
        std::unique_ptr<HttpBody> body = body_at(offset + done, out.size() - done);
        while (done < out.size()) done += body->read(out.subspan(done));
        keep(std::move(body));
        return done;
    }

    std::unique_ptr<Sequential> open_sequential(uint64_t offset) override {
        if (object_->ranges) return std::make_unique<RangedSequential>(object_, offset);
        if (offset > 0)
            throw Error(SHF_E_USAGE, "the server gives no byte ranges of this object",
                        "copy it to a local disk");
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

}  // namespace

std::unique_ptr<Source> http_source(const std::string& url, const Options& options,
                                    const Cancel& cancel) {
    auto object = std::make_shared<HttpObject>(HttpObject{url, options, cancel, {}, {}, {}, false});
    HttpRetry retry(object->server(), options, cancel);
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
            if (answer.status == 416 && answer.total() == 0U) {
                object->ranges = true;
                return std::make_unique<HttpSource>(std::move(object), nullptr);
            }
            if (answer.status == 206) refuse_several(answer);
            if (answer.status == 206 && answer.range && !answer.range->unsatisfied &&
                answer.range->first == 0 && object->size) {
                const uint64_t count = std::min(*object->size, answer.range->last + 1);
                if (count > head_size)
                    throw Error(SHF_E_NET_PERMANENT,
                                "the server gives more bytes than were asked for",
                                "copy the shard to a local disk");
                object->head.resize(static_cast<size_t>(count));
                for (size_t done = 0; done < object->head.size();) {
                    const size_t more = transfer->read(std::span(object->head).subspan(done));
                    if (more == 0)
                        throw Error(SHF_E_NET_TRANSIENT, "the server ends the answer too early",
                                    "look at the network, or try again later");
                    done += more;
                }
                transfer->finish();
                object->ranges =
                    !answer.strong_tag().empty() || object->head.size() == *object->size;
                if (!object->ranges) object->head.clear();
                return std::make_unique<HttpSource>(std::move(object), nullptr);
            }
            if (answer.status == 206)
                throw Error(SHF_E_NET_PERMANENT,
                            "the server answers with a range that it does not name",
                            "copy the shard to a local disk");
            if (answer.status != 200) throw answer.error();
            return std::make_unique<HttpSource>(std::move(object), std::move(transfer));
        } catch (const Error& error) {
            retry.after(error, pause);
        }
    }
}

}  // namespace shf
