// A block: some samples that follow one another, with flat tables over few pieces of payload
// memory. Blocks carry samples from readers to the consumer and on to the user; a sample handle is
// a block and a number, so that delivering one allocates nothing.
#pragma once

#include "core/memory.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

class Source;

// The list of field names of a sample, each followed by '/', which no name has: "jpg/cls/".
struct Schema {
    std::string names;
    std::vector<uint32_t> ends;  // end of name i, its '/' excluded
    // The fields are those of columns, already decoded (batch/row_field.h).
    bool of_rows = false;

    [[nodiscard]] std::string_view name(size_t i) const {
        const uint32_t begin = i == 0 ? 0 : ends[i - 1] + 1;
        return std::string_view(names).substr(begin, ends[i] - begin);
    }
};

// Where samples came from: one shard in one epoch.
struct Origin {
    std::string url;  // redacted
    uint64_t shard;
    uint64_t epoch;
    uint32_t lane;
    bool by_number = false;  // of a data set, whose samples have no epoch
    bool padding = false;    // repeated to fill up an epoch (even=pad)
    uint32_t part = 0;       // number of the stream among those of a mix
    uint32_t version = 0;    // hash of what identifies the version of the shard; 0: unknown
};

struct Block;

// An owned reference to a block.
struct BlockUnref {
    inline void operator()(Block* block) const noexcept;
};
using BlockRef = std::unique_ptr<Block, BlockUnref>;

struct Sample {
    Block* block;
    uint32_t index;
};

struct FieldView {
    std::string_view name;
    const uint8_t* data;
    size_t size;
};

// The rest of a field of which only the start was read: it is read straight to where it is wanted.
struct Deferred {
    uint64_t offset = 0;  // in the shard
    uint64_t size = 0;    // 0: there is none
};

// What a block is made of. The tables are those of shardfeed.h, SHF_BLOCK_*; `offset` is that of
// each sample's first header in its shard.
struct BlockParts {
    std::span<const uint64_t> first_field, schema, key, origin;  // n + 1, n, n + 1, n
    std::span<const uint64_t> buffer, start, stop;               // m each
    std::span<const uint64_t> offset;                            // n
    std::span<const Deferred> deferred = {};                     // m, or none
    std::shared_ptr<Source> source = {};                         // of what is deferred
    std::string_view keys;
    std::span<StorageRef> storages;  // buffer k lies in storage k; moved from, as the next two
    std::span<std::shared_ptr<const Schema>> schemas;
    std::span<std::shared_ptr<const Origin>> origins;
    std::span<const std::span<const uint8_t>> buffers;
    uint64_t payload_bytes;
};

// Immutable once made, and one piece of memory with all that the members below point to. References
// are counted by hand because samples share the block's count.
struct Block {
    std::atomic<uint64_t> references{1};
    uint32_t count = 0;        // samples, n
    uint32_t field_count = 0;  // fields of all samples, m
    const uint64_t *first_field = nullptr, *schema = nullptr, *key = nullptr, *origin = nullptr;
    const uint64_t *buffer = nullptr, *start = nullptr, *stop = nullptr, *offset = nullptr;
    std::string_view keys;
    std::span<Sample> samples;
    std::span<StorageRef> storages;
    std::span<std::shared_ptr<const Schema>> schemas;
    std::span<std::shared_ptr<const Origin>> origins;
    std::span<std::span<const uint8_t>> buffers;
    std::span<const Deferred> deferred;  // of each field; empty when all of them are here
    std::shared_ptr<Source> source;      // where the rest is; any thread may read it
    uint64_t payload_bytes = 0;
    size_t own_bytes = 0;  // of this piece

    // Owns: the reference is the caller's. Throws std::bad_alloc; the parts are then untouched.
    static Block* make(const BlockParts& parts);

    [[nodiscard]] std::string_view key_of(uint32_t i) const {
        return std::string_view(keys).substr(key[i], key[i + 1] - key[i]);
    }
    [[nodiscard]] FieldView field_of(uint32_t i, uint64_t number) const {
        const uint64_t row = first_field[i] + number;
        return {schemas[schema[i]]->name(number), buffers[buffer[row]].data() + start[row],
                static_cast<size_t>(stop[row] - start[row])};
    }
    // What field_of() lacks.
    [[nodiscard]] Deferred deferred_of(uint32_t i, uint64_t number) const {
        return deferred.empty() ? Deferred{} : deferred[first_field[i] + number];
    }
    [[nodiscard]] uint64_t payload_of(uint32_t i) const {
        uint64_t bytes = 0;
        for (uint64_t row = first_field[i]; row < first_field[i + 1]; ++row)
            bytes += stop[row] - start[row];
        return bytes;
    }
    // Memory behind the buffers, and with the tables.
    [[nodiscard]] uint64_t storage_bytes() const {
        uint64_t bytes = 0;
        for (const StorageRef& storage : storages) bytes += storage->capacity;
        return bytes;
    }
    // What is still to be read of its fields.
    [[nodiscard]] uint64_t deferred_bytes() const {
        uint64_t bytes = 0;
        for (const Deferred& rest : deferred) bytes += rest.size;
        return bytes;
    }
    [[nodiscard]] uint64_t memory() const { return storage_bytes() + own_bytes; }
    void ref() noexcept { references.fetch_add(1, std::memory_order_relaxed); }
    void unref() noexcept {
        if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
    }
    // One more reference. It has an owner at once: a list that finds no memory for it loses none.
    [[nodiscard]] BlockRef share() noexcept {
        ref();
        return BlockRef(this);
    }

  private:
    void destroy() noexcept;
};

void BlockUnref::operator()(Block* block) const noexcept {
    block->unref();
}

}  // namespace shf
