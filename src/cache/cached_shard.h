// One version of one shard in the cache, and where its missing bytes come from.
#pragma once

#include "cache/cache_block.h"
#include "cache/cache_folder.h"
#include "cache/cache_lock.h"
#include "core/error.h"
#include "io/source.h"
#include "io/source_context.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>

namespace shf {

class Cancel;
struct Options;

// What becomes of a block that a reader wants.
enum class Turn : uint8_t {
    cached,  // it is there
    mine,    // this reader fetches it, and the others wait
    alone,   // this reader fetches it, whatever the others do
};

// Any number of threads, and forked children.
class CachedShard {
  public:
    // `remote` may be NULL: then `offline` says why. The references must outlive it; of `use` NULL
    // means that nobody asks.
    CachedShard(CacheFolder folder, CacheLabel label, std::unique_ptr<Source> remote,
                std::optional<Fault> offline, const SourceContext& context);

    [[nodiscard]] const CacheLabel& label() const { return label_; }
    [[nodiscard]] Source* remote() const { return remote_.get(); }
    [[nodiscard]] uint64_t blocks() const {
        return (label_.size + cache_block_size - 1) / cache_block_size;
    }
    // Whether a block is there, without a look into it.
    [[nodiscard]] bool has(uint64_t number) const;
    // The first block after `number` that is there, or blocks().
    [[nodiscard]] uint64_t next_present(uint64_t number) const;
    // Whether all blocks are there.
    [[nodiscard]] bool is_whole() const { return whole_; }

    // The block, or NULL. One that is damaged is dropped, and counted. Throws Error(INTEGRITY) when
    // it was fetched again already.
    std::unique_ptr<OpenBlock> open_block(uint64_t number);
    // The bytes of `block` are not what was written: the same.
    void drop(const OpenBlock& block) { drop(block.number(), block.inode()); }
    // Waits until the block is there or this reader is to fetch it. With `mine` it has the locks of
    // `locked` blocks, at most `wanted`. Throws Error: CANCELLED, TIMEOUT; why the shard is
    // offline.
    Turn await(uint64_t number, uint64_t wanted, BlockLocks& locks, uint64_t& locked,
               std::unique_ptr<OpenBlock>& block);
    // NULL when blocks are not kept now.
    std::unique_ptr<BlockWriter> new_block(uint64_t number);
    void seal(BlockWriter& writer, uint64_t number);
    // Removes all blocks of this version.
    void remove() { folder_.remove({.path = path_}); }
    void count_cached(uint64_t bytes) { context_.use.cache_bytes += bytes; }
    // Throws why there is nothing but what the cache has.
    void require_remote() const;
    void check_cancel() const { context_.cancel.check(); }

  private:
    void drop(uint64_t number, uint64_t inode);

    CacheFolder folder_;
    const CacheLabel label_;
    const std::string path_;
    const std::unique_ptr<Source> remote_;
    const std::optional<Fault> offline_;
    const SourceContext context_;
    bool whole_ = false;
    std::atomic<bool> writes_;
    // The last sign of life of others who hold locks here and make no progress: nobody waits for
    // them until there is another one.
    std::atomic<int64_t> stalled_{-1};
    // Of each block: 1 once it was damaged, 2 once it was fetched again after that.
    std::unique_ptr<std::atomic<uint8_t>[]> faults_;
};

}  // namespace shf
