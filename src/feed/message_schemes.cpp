#include "feed/message_schemes.h"

#include "core/error.h"
#include "core/fork.h"
#include "core/options.h"
#include "feed/message_socket.h"
#include "io/pipe.h"
#include "io/sink.h"
#include "io/sources.h"
#include "sample/sample_message.h"
#include "tar/tar_header.h"
#include "url/scheme.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace shf {

namespace {

// ---- Reading ------------------------------------------------------------------------------------

// Shards are opened ahead. Without this, the shard of the next epoch at the same address would take
// messages of the current one. A stream has one reader at an address at a time; an address that is
// bound belongs to one stream.
class AddressClaim {
  public:
    // `owner` identifies the stream. Returns NULL while another reader of this stream has the
    // address. Throws Error(IO) when another stream has bound it.
    static std::unique_ptr<AddressClaim> make(const MessageAddress& address, const void* owner) {
        const std::lock_guard lock(mutex());
        const Place place{fork_generation(), address.location, address.binds ? nullptr : owner};
        const auto [there, is_new] = taken().insert({place, owner});
        if (is_new) return std::unique_ptr<AddressClaim>(new AddressClaim(place));
        if (there->second == owner) return nullptr;
        throw Error(SHF_E_IO, "this program reads " + escape(address.location) + " already",
                    "give each stream that binds an address of its own");
    }
    ~AddressClaim() {
        // In a forked child the mutex may be locked by a thread that does not exist there.
        if (std::get<0>(place_) != fork_generation()) return;
        const std::lock_guard lock(mutex());
        taken().erase(place_);
    }
    AddressClaim(const AddressClaim&) = delete;
    AddressClaim& operator=(const AddressClaim&) = delete;

  private:
    using Place = std::tuple<uint64_t, std::string, const void*>;

    explicit AddressClaim(Place place) : place_(std::move(place)) {}
    static std::mutex& mutex() {
        static std::mutex one;
        return one;
    }
    static std::map<Place, const void*>& taken() {
        static std::map<Place, const void*> all;
        return all;
    }

    const Place place_;
};

// Presents messages as the bytes of a tar file, so that the layers above read them like any other
// shard.
class MessageSequential : public Sequential {
  public:
    MessageSequential(const MessageAddress& address, const SourceContext& context)
        : address_(address), context_(context), senders_(context.options.senders) {}

    size_t read(std::span<uint8_t> out) override {
        while (piece_ == pieces_.size()) {
            if (ended_) return 0;
            take_message();
        }
        size_t done = 0;
        for (; done < out.size() && piece_ < pieces_.size(); ++piece_) {
            const std::span<const uint8_t> left = pieces_[piece_].subspan(used_);
            const size_t count = std::min(left.size(), out.size() - done);
            std::copy_n(left.begin(), count, out.begin() + static_cast<ptrdiff_t>(done));
            done += count;
            if (count < left.size()) {
                used_ += count;
                break;
            }
            used_ = 0;
        }
        return done;
    }
    bool ready() override {
        if (piece_ < pieces_.size() || ended_) return true;
        return open() && socket_->ready();
    }
    void finish() override {
        socket_.reset();
        claim_.reset();
    }

  private:
    // False: another reader of this stream is there.
    bool open() {
        if (socket_) return true;
        if (!claim_) claim_ = AddressClaim::make(address_, &context_.use);
        if (!claim_) return false;
        socket_ = std::make_unique<MessageSocket>(address_, context_.options, context_.cancel);
        return true;
    }

    // The shards before this one may take any time.
    void wait_for_address() {
        constexpr auto look_again = std::chrono::milliseconds(20);
        while (!open()) {
            context_.cancel.check();
            std::this_thread::sleep_for(look_again);
        }
    }

    void take_message() {
        wait_for_address();
        message_ = socket_->receive();
        if (message_.size() != 1)
            throw Error(
                SHF_E_FORMAT,
                "a message of " + plural(message_.size(), "frame") + ", where a sample has one",
                "batches of arrays are read by shardfeed.tensorcom");
        const SampleMessage sample = read_sample_message(message_[0].bytes());
        pieces_.clear();
        piece_ = used_ = 0;
        if (sample.is_end) {
            ended_ = senders_ != 0 && ++ends_ >= senders_;
            if (ended_) pieces_.emplace_back(zeros);
            return;
        }
        if (sample.key == last_key_)
            throw Error(SHF_E_FORMAT,
                        "two messages with the key " + escape(last_key_) + " follow one another",
                        "give every sample a key of its own, in shardfeed cat with --rekey");
        last_key_ = sample.key;
        lay_out(sample);
    }

    void lay_out(const SampleMessage& sample) {
        headers_.clear();
        std::vector<size_t> ends;
        for (const auto& field : sample.fields) {
            std::string name(sample.key);
            name += '.';
            name += field.name;
            append_tar_header(headers_, name, field.data.size());
            ends.push_back(headers_.size());
        }
        const std::span<const uint8_t> headers(reinterpret_cast<const uint8_t*>(headers_.data()),
                                               headers_.size());
        size_t start = 0;
        for (size_t i = 0; i < sample.fields.size(); ++i) {
            const std::span<const uint8_t> data = sample.fields[i].data;
            pieces_.push_back(headers.subspan(start, ends[i] - start));
            pieces_.push_back(data);
            pieces_.push_back(std::span(zeros).first(tar_padding(data.size())));
            start = ends[i];
        }
    }

    static constexpr size_t end_size = 1024;  // two blocks
    static constexpr std::array<uint8_t, end_size> zeros = {};

    const MessageAddress address_;
    const SourceContext context_;
    std::unique_ptr<AddressClaim> claim_;
    std::unique_ptr<MessageSocket> socket_;
    const uint64_t senders_;  // so many end marks end it; 0: none does
    uint64_t ends_ = 0;
    bool ended_ = false;
    FeedMessage message_;
    std::string headers_, last_key_;
    std::vector<std::span<const uint8_t>> pieces_;  // of message_ and headers_
    size_t piece_ = 0, used_ = 0;                   // what has been read of them
};

class MessageSource : public Source {
  public:
    MessageSource(const MessageAddress& address, const SourceContext& context)
        : address_(address), context_(context) {}

    [[nodiscard]] std::optional<uint64_t> size() const override { return std::nullopt; }
    [[nodiscard]] bool seekable() const override { return false; }
    size_t read(uint64_t /*offset*/, std::span<uint8_t> /*out*/) override { refuse_seek(); }
    std::unique_ptr<Sequential> open_sequential(uint64_t offset) override {
        if (offset != 0 || std::exchange(opened_, true)) refuse_seek();
        return std::make_unique<MessageSequential>(address_, context_);
    }

  private:
    const MessageAddress address_;
    const SourceContext context_;
    bool opened_ = false;
};

// A list of shards from elsewhere opens no port of this machine.
void check_secure(const Options& options) {
    if (pipes_refused(options))
        throw Error(SHF_E_USAGE, "messages of ZeroMQ are refused in secure mode",
                    "secure mode comes from the option secure or from SHARDFEED_SECURE=1 in the "
                    "environment");
}

std::unique_ptr<Source> open(const std::string& url, const SourceContext& context) {
    check_secure(context.options);
    const MessageAddress address = MessageAddress::parse(url);
    if (address.sends())
        throw Error(SHF_E_USAGE, "samples are sent there, and not read",
                    "read zpull://, zsub://, zrpull:// or zrsub://");
    return std::make_unique<MessageSource>(address, context);
}

Identity stat(const std::string& /*url*/, const SourceContext& /*context*/) {
    throw Error(SHF_E_UNSUPPORTED, "messages have no index", "read them as a stream");
}

// ---- Writing ------------------------------------------------------------------------------------

// Each write is one message: see message_container(). Publishing sends the end mark.
class MessageSink : public Sink {
  public:
    MessageSink(const MessageAddress& address, const SourceContext& context)
        : socket_(address, context.options, context.cancel) {}

    void write(std::span<const uint8_t> bytes) override { socket_.send(bytes); }
    void publish() override {
        socket_.drain();
        SampleMessageWriter writer;
        socket_.send(writer.end_mark());
        socket_.finish();
    }

  private:
    MessageSocket socket_;
};

std::unique_ptr<Sink> write(const std::string& url, const SourceContext& context) {
    check_secure(context.options);
    const MessageAddress address = MessageAddress::parse(url);
    if (!address.sends())
        throw Error(SHF_E_USAGE, "samples are read there, and not sent",
                    "write zpush://, zpub://, zrpush:// or zrpub://");
    return std::make_unique<MessageSink>(address, context);
}

// ---- All of them --------------------------------------------------------------------------------

Scheme scheme(std::string_view name) {
    Scheme made{name, open, stat, nullptr};
    made.write = write;
    made.is_messages = true;
    return made;
}

}  // namespace

void add_message_schemes() {
    // What Sources refers to.
    static std::deque<std::string> names;
    static std::deque<Scheme> schemes;
    static const bool added = [] {
        for (const std::string_view name : message_schemes)
            for (const std::string_view transport : {"", "+tcp", "+ipc"}) {
                names.push_back(std::string(name) += transport);
                Sources::add(schemes.emplace_back(scheme(names.back())));
            }
        return true;
    }();
    (void)added;
}

}  // namespace shf
