// One shard as bytes; everything above this folder sees shards only through it.
#pragma once

#include "core/cancel.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace shf {

class SeenBytes;

// Reads one shard from front to back. One thread at a time.
class Sequential {
  public:
    virtual ~Sequential() = default;
    // Reads at least one byte unless the end is reached; returns the count, 0 at the end. Waits for
    // bytes, but not past a cancel. Throws Error (IO, CHILD, TRUNCATED, CHANGED, CANCELLED, ...).
    virtual size_t read(std::span<uint8_t> out) = 0;
    // Moves on by `size` bytes without reading them, where that is cheap and they are there. False:
    // nothing was done.
    virtual bool skip(uint64_t /*size*/) { return false; }
    // True when read() will not wait for another process or host.
    virtual bool ready() { return true; }
    // Called once after read() returned 0: proves that the end is the true one (the child ended
    // with status 0, the file is the one that was opened). Throws Error otherwise.
    virtual void finish() {}
};

// What tells one version of a shard from another, wherever it is kept.
struct Identity {
    std::optional<uint64_t> size;  // bytes
    int64_t modified = 0;          // nanoseconds since 1970; 0: not known
    std::string tag;               // more of its identity on this machine: device and inode
    std::string version;           // what its home calls this version: an ETag; empty: nothing

    bool operator==(const Identity&) const = default;
};

// When it pays to read more than is wanted, in bytes: kilobytes on a disk, megabytes where each
// read is a request over a network.
struct ReadCost {
    uint64_t gap = 4096;            // unwanted bytes that are cheaper to read than a second read
    uint64_t at_once = 128 * 1024;  // worth reading ahead where reads follow one another
    unsigned parallel = 1;          // reads that are worth making at the same time
};

struct ByteRange {
    uint64_t offset = 0, size = 0;
};

// A local shard that lies in memory as a whole (option map): its bytes are read where they are. Any
// thread.
class Mapping {
  public:
    virtual ~Mapping() = default;
    [[nodiscard]] std::span<const uint8_t> bytes() const { return bytes_; }
    // Keeps the bytes where they are, and nothing else: not the file's descriptor.
    [[nodiscard]] const std::shared_ptr<const void>& memory() const { return memory_; }
    // To be called before a range is read: fetches what is not in memory yet; with `in_order` what
    // lies behind it will be read too. Throws Error: CHANGED or TRUNCATED when the file is no
    // longer the one that was opened, IO, CANCELLED.
    virtual void expect(ByteRange range, bool in_order) const = 0;

  protected:
    std::span<const uint8_t> bytes_;  // nobody writes them
    std::shared_ptr<const void> memory_;
};

// One shard, opened. Sources that can seek serve any number of threads through read().
class Source {
  public:
    virtual ~Source() = default;
    // Length in bytes when it is known before reading.
    [[nodiscard]] virtual std::optional<uint64_t> size() const = 0;
    // The version that all reads of this object see.
    [[nodiscard]] virtual Identity identity() const {
        return {.size = size(), .tag = {}, .version = {}};
    }
    [[nodiscard]] virtual ReadCost read_cost() const { return {}; }
    // Bytes from the start on that are in memory already: reading them asks nobody.
    [[nodiscard]] virtual uint64_t at_hand() const { return 0; }
    // Says what will be read soon, in this order. The source may begin to fetch it.
    virtual void prefetch(std::span<const ByteRange> /*ranges*/) {}
    // Whether the file ends in a hole: bytes that read as zeros because nobody has written any.
    // False where the file system cannot tell.
    [[nodiscard]] virtual bool ends_in_hole() const { return false; }
    // True when read() and open_sequential(offset > 0) work.
    [[nodiscard]] virtual bool seekable() const = 0;
    // Reads up to out.size() bytes at `offset` and returns the count: fewer only at the end.
    // Throws Error; USAGE when the source cannot seek.
    virtual size_t read(uint64_t offset, std::span<uint8_t> out) = 0;
    // Fills `parts`, one after another, from `offset` on, and returns the count: fewer only at the
    // end. May leave out the look whether this is still the version that was opened, which takes a
    // tenth of a small read: for callers that have a checksum of their own. When it fails, verify()
    // tells whether that is why.
    virtual size_t read_scattered(uint64_t offset, std::span<const std::span<uint8_t>> parts);
    // Throws Error(CHANGED or TRUNCATED) when this is no longer the version that was opened.
    virtual void verify() {}
    // Whether something was done to the file after it was opened, as chmod does or a write after
    // which the old modification time was put back. Its first and last bytes are what they were;
    // what else is known of its bytes should be compared.
    [[nodiscard]] virtual bool touched() const { return false; }
    // All its bytes; NULL when they are not in memory. The same object each time.
    [[nodiscard]] virtual std::shared_ptr<const Mapping> mapping() const { return nullptr; }
    // What is remembered of the bytes, for another opening of the same file: there they are
    // compared when the file was touched meanwhile. NULL when there is nothing.
    [[nodiscard]] virtual std::shared_ptr<SeenBytes> seen() const { return nullptr; }
    virtual void take_over(std::shared_ptr<SeenBytes> /*seen*/) {}
    // A reader that starts at `offset`. A source that cannot seek gives one reader, from 0.
    // The result keeps what it needs of the source alive.
    virtual std::unique_ptr<Sequential> open_sequential(uint64_t offset) = 0;
};

// A Source over bytes in memory, which must outlive it. `chunk` bounds the bytes a single
// Sequential::read gives (0: no bound); `size_known`: whether size() has a value. For tests,
// fuzz targets and archives that are in memory already.
std::unique_ptr<Source> memory_source(std::span<const uint8_t> bytes, size_t chunk = 0,
                                      bool size_known = true);

}  // namespace shf
