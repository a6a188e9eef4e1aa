#include "cache/cached_shard.h"

#include "core/cancel.h"
#include "core/options.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fcntl.h>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

namespace shf {

namespace {

constexpr auto look_again = std::chrono::milliseconds(2);
// Who holds locks and makes no progress for so long waits for his own consumer, or for a server.
constexpr auto stalled_after = std::chrono::seconds(2);
constexpr auto longest_wait = std::chrono::seconds(20);

// States of blocks in faults_, beside 0.
constexpr uint8_t damaged_once = 1, fetched_again = 2, stays_damaged = 3;

}  // namespace

CachedShard::CachedShard(CacheFolder folder, CacheLabel label, std::unique_ptr<Source> remote,
                         std::optional<Fault> offline, const SourceContext& context)
    : folder_(std::move(folder)),
      label_(std::move(label)),
      path_("shards/" + url_folder(label_.url) + "/" + version_folder(label_)),
      remote_(std::move(remote)),
      offline_(std::move(offline)),
      context_(context),
      writes_(remote_ != nullptr),
      faults_(new std::atomic<uint8_t>[static_cast<size_t>(blocks())] {}) {
    if (offline_) ++context_.use.stale;
    if (writes_) {
        // It is also the time of the last use.
        const int error = folder_.write_label(path_, label_);
        if (error != 0) {
            writes_ = false;
            warn_once(SourceTrouble::cache_folder,
                      "the cache folder " + escape(folder_.path()) +
                          " cannot be written, shards are read without it: " +
                          std::generic_category().message(error),
                      context_);
        }
    }
    uint64_t present = 0;
    for (const std::string& name : names_in(folder_.fd(), path_))
        if (block_of_name(name) < blocks()) ++present;
    whole_ = present == blocks();
}

bool CachedShard::has(uint64_t number) const {
    return ::faccessat(folder_.fd(), (path_ + "/" + block_name(number)).c_str(), F_OK,
                       AT_SYMLINK_NOFOLLOW) == 0;
}

uint64_t CachedShard::next_present(uint64_t number) const {
    do ++number;
    while (number < blocks() && !has(number));
    return std::min(number, blocks());
}

std::unique_ptr<OpenBlock> CachedShard::open_block(uint64_t number) {
    if (faults_[number] == stays_damaged) return nullptr;
    BlockLook look;
    auto block =
        OpenBlock::open(folder_.fd(), path_ + "/" + block_name(number), label_, number, look);
    if (look.state == BlockState::damaged) drop(number, look.inode);
    return block;
}

void CachedShard::drop(uint64_t number, uint64_t inode) {
    const std::string file = path_ + "/" + block_name(number);
    struct stat status {};
    // Another thread or process may have put a good one in its place.
    if (::fstatat(folder_.fd(), file.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        status.st_ino != inode)
        return;
    const bool removed = ::unlinkat(folder_.fd(), file.c_str(), 0) == 0 || errno == ENOENT;
    ++context_.use.cache_faults;
    warn_once(SourceTrouble::cache_damage,
              "a block in the cache folder " + escape(folder_.path()) +
                  " is damaged; it is dropped and fetched again",
              context_);
    // On a disk that became read-only, say: the block is not looked at again.
    if (faults_[number].exchange(removed ? damaged_once : stays_damaged) == fetched_again)
        throw Error(SHF_E_INTEGRITY,
                    "the cache gives wrong bytes, and did so again after they were fetched again",
                    "test the disk and the memory of this machine, or leave out cache",
                    number * cache_block_size);
}

void CachedShard::require_remote() const {
    if (!offline_) return;
    Fault fault = *offline_;
    fault.cause += "; the cache has not all bytes of this shard";
    throw Error(std::move(fault));
}

Turn CachedShard::await(uint64_t number, uint64_t wanted, BlockLocks& locks, uint64_t& locked,
                        std::unique_ptr<OpenBlock>& block) {
    locked = 0;
    const auto start = Clock::now();
    auto moved = start;
    int64_t beat = -1;
    for (;;) {
        block = open_block(number);
        if (block) return Turn::cached;
        require_remote();
        if (!writes_) return Turn::alone;
        if (!locks.is_open()) locks.open(folder_.fd(), path_ + "/lock");
        locked = locks.try_lock(number, wanted);
        if (locked > 0) {
            // It may have been sealed between the look and the lock.
            block = open_block(number);
            if (!block) return Turn::mine;
            locks.unlock(number, locked);
            locked = 0;
            return Turn::cached;
        }
        const auto now = Clock::now();
        if (const int64_t last = locks.last_beat(); last != beat) {
            beat = last;
            moved = now;
        }
        if (now - moved > stalled_after) {
            stalled_ = beat;
            locks.set_stalled();
        }
        if (now - start > longest_wait) locks.set_vain();
        if (stalled_ == beat || locks.vain()) return Turn::alone;
        context_.cancel.check();
        std::this_thread::sleep_for(look_again);
    }
}

std::unique_ptr<BlockWriter> CachedShard::new_block(uint64_t number) {
    if (!writes_) return nullptr;
    auto writer = std::make_unique<BlockWriter>(folder_, path_, label_, number);
    if (writer->full()) return nullptr;
    return writer;
}

void CachedShard::seal(BlockWriter& writer, uint64_t number) {
    const int error = writer.seal();
    if (error == 0) {
        for (uint8_t damaged : {damaged_once, stays_damaged})
            faults_[number].compare_exchange_strong(damaged, fetched_again);
        return;
    }
    // The folder of the version may have been removed meanwhile: the next block makes it again.
    if (error == ENOENT) return;
    writes_ = false;
    warn_once(SourceTrouble::cache_folder,
              "the cache folder " + escape(folder_.path()) +
                  " (cache_size=" + std::to_string(folder_.limit()) +
                  ") cannot be written, shards are read without it: " +
                  std::generic_category().message(error) +
                  "; help: free space there, or give a smaller cache_size",
              context_);
}

}  // namespace shf
