// Ranges of an object that are read in order, several of them on their way at once.
#pragma once

#include "http/http_client.h"
#include "http/http_object.h"
#include "http/http_retry.h"
#include "io/source.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace shf {

// By one thread at a time. Every range is read to its end, however often connections end before.
class HttpRanges {
  public:
    // The bytes [first, end), in pieces of `range_size` where several connections are allowed.
    HttpRanges(std::shared_ptr<const HttpObject> object, uint64_t first, uint64_t end);
    // These ranges, in their order; those that are near one another in one request.
    HttpRanges(std::shared_ptr<const HttpObject> object, std::span<const ByteRange> ranges);
    ~HttpRanges();
    HttpRanges(const HttpRanges&) = delete;
    HttpRanges& operator=(const HttpRanges&) = delete;

    // The next byte that read() gives; past the end of the object when nothing is left.
    [[nodiscard]] uint64_t at() const;
    // True when read() would not wait.
    [[nodiscard]] bool ready() const;
    // Takes the client now which requests will go by.
    void take_client();
    // Sends the first requests, without waiting for their answers.
    void begin() { fill(true); }
    // Reads at least one byte of the range in front; 0 when nothing is left. Throws Error.
    size_t read(std::span<uint8_t> out);
    // Moves on to `offset`, when that and the `size` bytes from there on are in one of the ranges.
    // False: nothing was done.
    bool seek(uint64_t offset, uint64_t size);

  private:
    HttpRanges(std::shared_ptr<const HttpObject> object, uint64_t first, uint64_t end, bool listed);

    struct Piece {
        uint64_t at, end;
        uint64_t reserved = 0;  // bytes of SourceUse::ahead_bytes
        bool checked = false;   // the answer is for this range
        std::unique_ptr<HttpExchange> exchange{};
    };

    void plan(bool ahead);
    void fill(bool ahead);
    [[nodiscard]] bool wants_more() const;
    size_t read_front(std::span<uint8_t> out);
    void send(Piece& piece, size_t ahead);
    bool reserve(Piece& piece);
    void drop_front();
    void leave_parent();

    const std::shared_ptr<const HttpObject> object_;
    const std::string server_;
    const uint64_t most_ahead_;  // bytes of the handle's ranges in memory
    const uint64_t piece_size_;
    const bool listed_;            // all of the ranges are wanted, and soon
    uint64_t next_ = 0, end_ = 0;  // of what is not in pieces yet
    bool again_ = false;           // after a fault, until bytes come
    HttpRetry retry_;
    TakenHttpClient client_;
    std::deque<Piece> pieces_;            // the first `connections` of them may be on their way
    uint64_t read_ = 0;                   // bytes
    std::chrono::nanoseconds waited_{0};  // for them
};

}  // namespace shf
