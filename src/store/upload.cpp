#include "store/upload.h"

#include "core/cancel.h"
#include "core/checksum.h"
#include "core/error.h"
#include "core/options.h"
#include "core/threads.h"
#include "http/libcrypto.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace shf {

namespace {

constexpr uint64_t smallest_part = uint64_t{8} << 20;
// Shards that may be on their way at once: one is being written, one is being published, and one
// waits for that.
constexpr uint64_t shards_at_once = 3;
// An upload that cannot be aborted costs no more of the time of those who close a writer.
constexpr uint64_t abort_retries = 1;

using Bytes = std::vector<uint8_t>;

class UploadSink : public Sink {
  public:
    UploadSink(std::unique_ptr<Upload> upload, const SourceContext& context)
        : context_(context), upload_(std::move(upload)) {
        const uint64_t room = context.options.memory / shards_at_once / smallest_part;
        most_ = std::clamp<uint64_t>(room, 2, 257) - 1;  // one is being filled
        most_ = std::min({most_, context.options.connections, upload_->most_at_once()});
    }

    ~UploadSink() override {
        if (::getpid() != owner_) {  // threads and upload are the parent's
            for (std::thread& thread : threads_) thread.detach();
            return;
        }
        stop_.request();
        {
            const std::lock_guard lock(mutex_);
            ending_ = true;
        }
        changed_.notify_all();
        for (std::thread& thread : threads_) thread.join();
        if (begun_ && !published_) abort();
    }

    void write(std::span<const uint8_t> bytes) override {
        size_ += bytes.size();
        while (!bytes.empty()) {
            const auto wanted = static_cast<size_t>(part_size(next_));
            if (part_.capacity() < wanted) part_.reserve(wanted);
            const size_t count = std::min(bytes.size(), wanted - part_.size());
            part_.insert(part_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(count));
            bytes = bytes.subspan(count);
            // A part goes when there is more: what is small is put at once.
            if (part_.size() == wanted && !bytes.empty()) send(false);
        }
    }

    void publish() override {
        if (next_ == 0) {
            upload_->put(part_, context_);
        } else {
            send(true);
            wait_for(0);
            upload_->complete(tags_, context_);
        }
        published_ = true;
        upload_->check(size_, context_);
    }

    // Also what is small goes as a part: what is put at once appears at once.
    PreparedFile prepare() override {
        send(true);
        wait_for(0);
        PreparedFile file{.url = {}, .size = size_, .upload = {}, .place = {}, .parts = tags_};
        upload_->describe(file);
        published_ = true;  // it is somebody else's
        return file;
    }

  private:
    struct Part {
        uint64_t number, offset;
        bool last;
        Bytes bytes;
    };

    // Hands the part over.
    void send(bool last) {
        if (!begun_) {
            upload_->begin(context_);
            begun_ = true;
        }
        if (next_ == most_parts)
            throw Error(SHF_E_LIMIT, "the shard has more parts than a store takes",
                        "set max_bytes, so that shards have at most some hundred gigabytes");
        wait_for(most_ - 1);
        Bytes spare;
        {
            const std::lock_guard lock(mutex_);
            tags_.emplace_back();
            queue_.push_back({next_++, sent_, last, std::move(part_)});
            sent_ += queue_.back().bytes.size();
            ++on_their_way_;
            if (!spare_.empty()) {
                spare = std::move(spare_.back());
                spare_.pop_back();
            }
        }
        part_ = std::move(spare);
        part_.clear();
        if (threads_.size() < most_ && threads_.size() < next_)
            start_thread(threads_, "uploaders", most_, [this] { run(); });
        changed_.notify_all();
    }

    // Until at most `most` parts are on their way. Throws Error.
    void wait_for(uint64_t most) {
        std::unique_lock lock(mutex_);
        while (!failure_ && on_their_way_ > most) {
            lock.unlock();
            context_.cancel.check();
            lock.lock();
            changed_.wait_for(lock, std::chrono::milliseconds(50),
                              [&] { return failure_ || on_their_way_ <= most; });
        }
        if (failure_) throw Error(*failure_);
    }

    void run() {
        const SourceContext context{context_.options, stop_, context_.use};
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [&] { return ending_ || failure_ || !queue_.empty(); });
            if (ending_ || failure_) return;
            Part part = std::move(queue_.front());
            queue_.pop_front();
            lock.unlock();
            std::string tag;
            std::optional<Fault> fault;
            try {
                tag = upload_->put_part({.number = part.number,
                                         .offset = part.offset,
                                         .last = part.last,
                                         .bytes = part.bytes},
                                        context);
            } catch (...) {
                fault = describe_exception();
            }
            lock.lock();
            if (fault && !failure_) failure_ = std::move(fault);
            tags_[static_cast<size_t>(part.number)] = std::move(tag);
            if (spare_.size() < most_ && spare_.size() < spare_.capacity())
                spare_.push_back(std::move(part.bytes));
            --on_their_way_;
            changed_.notify_all();
        }
    }

    // A cancel of the writer is no reason to leave parts that somebody pays for.
    void abort() noexcept {
        try {
            Options options = context_.options;
            options.retries = std::min(options.retries, abort_retries);
            const Cancel never;
            upload_->abort({options, never, context_.use});
        } catch (...) {  // rules of the bucket remove what is left
        }
    }

    const SourceContext context_;
    const pid_t owner_ = ::getpid();
    uint64_t most_ = 1;
    Cancel stop_;  // of the threads
    const std::unique_ptr<Upload> upload_;
    Bytes part_;         // that is being filled
    uint64_t next_ = 0;  // number of that part
    uint64_t size_ = 0, sent_ = 0;
    bool begun_ = false, published_ = false;

    std::mutex mutex_;
    std::condition_variable changed_;
    // Under the mutex.
    std::deque<Part> queue_;
    std::vector<std::string> tags_;
    std::vector<Bytes> spare_ = reserved();
    uint64_t on_their_way_ = 0;
    std::optional<Fault> failure_;
    bool ending_ = false;

    static std::vector<Bytes> reserved() {
        std::vector<Bytes> result;
        result.reserve(256);
        return result;
    }

    std::vector<std::thread> threads_;
};

}  // namespace

uint64_t part_size(uint64_t number) {
    constexpr uint64_t of_one_size = 1000;
    return smallest_part * (1 + number / of_one_size);
}

std::unique_ptr<Sink> upload_sink(std::unique_ptr<Upload> upload, const SourceContext& context) {
    return std::make_unique<UploadSink>(std::move(upload), context);
}

void publish_upload(Upload& upload, const PreparedFile& file, const SourceContext& context) {
    upload.resume(file);
    upload.complete(file.parts, context);
    upload.check(file.size, context);
}

void discard_upload(Upload& upload, const PreparedFile& file, const SourceContext& context) {
    upload.resume(file);
    upload.abort(context);
}

std::string upload_id() {
    std::random_device random;
    std::string bytes;
    for (int i = 0; i < 16; ++i) bytes += static_cast<char>(random() & 0xff);
    return hex(bytes);
}

std::string crc32_base64(std::span<const uint8_t> bytes) {
    const uint32_t crc = crc32(bytes);
    std::string text;
    for (const unsigned shift : {24U, 16U, 8U, 0U}) text += static_cast<char>(crc >> shift & 0xff);
    return base64_encode(text);
}

Error not_as_written(const std::string& cause) {
    return Error(SHF_E_INTEGRITY, "the object is not as it was written: " + cause,
                 "look at who else writes there");
}

}  // namespace shf
