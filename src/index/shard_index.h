// Where each sample and field of a shard lies. docs/index-format.md describes the file byte for
// byte.
#pragma once

#include "codec/decode_points.h"
#include "core/little_endian.h"
#include "core/memory.h"
#include "core/sealed_map.h"
#include "sample/grouper.h"
#include "sample/schema_set.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

class Source;

// What a shard looked like when its index was made.
struct ShardIdentity {
    uint64_t size = 0;
    int64_t modified = 0;            // nanoseconds since 1970
    std::array<uint8_t, 16> head{};  // XXH3-128 of the first 64 KiB
    std::array<uint8_t, 16> tail{};  // and of the last

    bool operator==(const ShardIdentity&) const = default;
};

// Throws Error.
ShardIdentity identify(Source& source);
// So many bytes of each end tell one shard from another.
inline constexpr size_t identity_part = size_t{64} << 10;
// The identity of a shard that cannot be read: `head` and `tail` are its first and last
// identity_part bytes, or all of a shorter one. Its time is 0: not known.
ShardIdentity identity_of(uint64_t size, std::span<const uint8_t> head,
                          std::span<const uint8_t> tail);

// Numbers as they lie in the file, little endian and not aligned.
template <typename Number>
class Column {
  public:
    Column() = default;
    explicit Column(std::span<const uint8_t> bytes) : bytes_(bytes) {}
    [[nodiscard]] size_t size() const { return bytes_.size() / sizeof(Number); }
    Number operator[](size_t i) const {
        return little_endian<Number>(bytes_.data() + i * sizeof(Number));
    }
    void prefetch(size_t i) const { __builtin_prefetch(bytes_.data() + i * sizeof(Number)); }

  private:
    std::span<const uint8_t> bytes_;
};

// What an index file says of its shard as a whole.
struct IndexSummary {
    uint64_t samples = 0;
    uint64_t size = 0;  // of the shard, bytes
    int64_t modified = 0;
    uint64_t leniency = 0;
    bool compressed = false;
};

// Reads a few hundred bytes of an index file, so that whether it is damaged is not seen. Throws
// Error.
IndexSummary summary_of(uint64_t file_size, const SealedOutline::Read& read);

// The index of one shard: a few flat columns. Does not change once it is made.
class ShardIndex {
  public:
    // Reads the bytes of an index file. Throws Error(FORMAT, INTEGRITY, UNSUPPORTED) unless
    // everything in it fits together.
    explicit ShardIndex(StorageRef file, size_t size);

    [[nodiscard]] const ShardIdentity& identity() const { return identity_; }
    [[nodiscard]] size_t samples() const { return key_ends_.size(); }
    [[nodiscard]] size_t members() const { return offsets_.size(); }
    // Bytes of all keys together.
    [[nodiscard]] uint64_t keys_size() const { return keys_.size(); }
    // Of a compressed tar, where its decompression can start: offsets of samples, members and the
    // end are those of the tar in it. NULL for a plain one.
    [[nodiscard]] const std::shared_ptr<const DecodePoints>& points() const { return points_; }
    // Where the end marker of the tar starts.
    [[nodiscard]] uint64_t end() const { return end_; }
    // The switches under which the walk accepted the shard, see leniency_of(): under stricter ones
    // it might not have.
    [[nodiscard]] uint64_t leniency() const { return leniency_; }

    [[nodiscard]] std::string_view key(size_t sample) const {
        const size_t begin = sample == 0 ? 0 : key_ends_[sample - 1];
        return keys_.substr(begin, key_ends_[sample] - begin);
    }
    [[nodiscard]] const std::shared_ptr<const Schema>& schema(size_t sample) const {
        return schemas_[schema_[sample]];
    }
    // The different ones, and which of them a sample has.
    [[nodiscard]] std::span<const std::shared_ptr<const Schema>> schemas() const {
        return schemas_;
    }
    [[nodiscard]] size_t schema_number(size_t sample) const { return schema_[sample]; }
    // Offset of the sample's first header.
    [[nodiscard]] uint64_t header(size_t sample) const { return headers_[sample]; }
    // The fields of sample i are the members first_member(i) up to first_member(i + 1).
    [[nodiscard]] size_t first_member(size_t sample) const { return first_members_[sample]; }
    // Of a member's data.
    [[nodiscard]] uint64_t offset(size_t member) const { return offsets_[member]; }
    [[nodiscard]] uint64_t size(size_t member) const { return sizes_[member]; }

    // Asks for the rows of a sample at once: in random order each column is a cache miss.
    void prefetch(size_t sample) const {
        __builtin_prefetch(&first_members_[sample]);
        key_ends_.prefetch(sample);
        schema_.prefetch(sample);
        headers_.prefetch(sample);
        // Where it is when all samples have as many fields as the first: to look would be to wait.
        const size_t member = std::min(sample * first_members_[1], offsets_.size() - 1);
        offsets_.prefetch(member);
        sizes_.prefetch(member);
    }
    // The same for its key, whose place must be there before.
    void prefetch_key(size_t sample) const { __builtin_prefetch(key(sample).data()); }

    // The same index with this modification time of its shard. Throws Error.
    [[nodiscard]] std::shared_ptr<const ShardIndex> with_time(int64_t modified) const;
    // The file, as the constructor took it.
    [[nodiscard]] std::span<const uint8_t> file() const { return {file_->data, file_size_}; }

  private:
    void read_body();
    void read_schemas(std::string_view text);
    void check() const;

    StorageRef file_;
    size_t file_size_;
    ShardIdentity identity_;
    uint64_t end_ = 0, leniency_ = 0;
    std::shared_ptr<const DecodePoints> points_;
    std::vector<std::shared_ptr<const Schema>> schemas_;
    std::string_view keys_;
    Column<uint32_t> key_ends_, schema_;
    Column<uint64_t> headers_, offsets_, sizes_;
    std::vector<uint32_t> first_members_;  // samples + 1
};

// Collects the rows of an index.
class IndexRows {
  public:
    // Throws Error(LIMIT) when there are more than a file can hold.
    void add(const GroupedSample& sample);
    // Makes the index. `end` is where the end marker of the tar starts; `points` is NULL for a
    // plain tar. Throws Error.
    [[nodiscard]] std::shared_ptr<const ShardIndex> finish(
        const ShardIdentity& identity, uint64_t end, uint64_t leniency,
        const DecodePoints* points = nullptr) const;

  private:
    std::string keys_;
    SchemaSet schemas_;
    std::vector<uint32_t> key_ends_, schema_;
    std::vector<uint64_t> headers_, offsets_, sizes_;
};

}  // namespace shf
