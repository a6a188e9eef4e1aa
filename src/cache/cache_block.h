// One block of a shard as a file. It is written under another name, and renamed when it is whole;
// then it does not change. Every piece of it has a checksum that is compared at every read.
//
//     0  "SHFBLOC2"                    48  length of the URL
//     8  checksum of the header after  56  length of the version
//    16  length of the header          64  the URL without secrets, the version
//    24  number of the block               checksums of the pieces, from a multiple of 8 on
//    32  bytes of data                     zeros, up to a multiple of 4,096
//    40  bytes of the shard                the data
//
// Checksums are XXH3, 64 bits. URL, version and sizes are compared in full when a block is opened:
// names of folders are hashes, and two that collide must not mix shards.
#pragma once

#include "cache/cache_folder.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace shf {

// What is fetched, locked and kept as one. Files of 1 MiB are read at 9.2 GB/s, of 2 MiB at 9.9, of
// 16 MiB at 10.2; who wants 10 kB of a shard waits for all of its block, once.
inline constexpr uint64_t cache_block_size = uint64_t{2} << 20;
// What has a checksum. Readers take parts of pieces, and what they do not take is copied later; as
// small as the checksums of all of them fit into the first page.
inline constexpr uint64_t cache_piece_size = uint64_t{16} << 10;

// The size of the file of a block.
uint64_t block_file_size(const CacheLabel& label, uint64_t data_size);
// The bytes of data in block `number`.
inline uint64_t block_data_size(const CacheLabel& label, uint64_t number) {
    const uint64_t at = number * cache_block_size;
    return at >= label.size ? 0 : std::min(cache_block_size, label.size - at);
}
// What the files of a whole shard take.
uint64_t shard_on_disk(const CacheLabel& label);

// What was read beyond the bytes that were wanted, to the end of their piece: a reader in sequence
// wants it next.
struct HeldBytes {
    // In pages, so that the kernel copies whole ones.
    struct alignas(4096) Memory {
        std::array<uint8_t, cache_piece_size> before, behind;  // of the pieces of what is wanted
    };
    std::unique_ptr<Memory> memory;
    uint64_t block = no_block;
    uint64_t begin = 0, end = 0;  // in the data of the block; in `behind`, as far from its start
};                                // as `begin` is from that of its piece

enum class BlockState : uint8_t { absent, damaged, good };
struct BlockLook {
    BlockState state = BlockState::absent;
    uint64_t inode = 0;  // of the file
};

// A sealed block. Any number of threads.
class OpenBlock {
  public:
    // `path` is below the folder `root`. NULL unless the state is good; a block of another shard is
    // absent.
    static std::unique_ptr<OpenBlock> open(int root, const std::string& path,
                                           const CacheLabel& label, uint64_t number,
                                           BlockLook& look);

    [[nodiscard]] uint64_t number() const { return number_; }
    [[nodiscard]] uint64_t size() const { return size_; }
    [[nodiscard]] uint64_t inode() const { return inode_; }
    // Reads up to out.size() bytes at `offset` of the data, and returns the count: at least one,
    // unless `offset` is the end, or what is there is damaged.
    size_t read(uint64_t offset, std::span<uint8_t> out, HeldBytes& held) const;

  private:
    OpenBlock(Descriptor file, uint64_t inode, uint64_t number, uint64_t size, uint64_t header)
        : file_(std::move(file)), inode_(inode), number_(number), size_(size), header_(header) {}

    // `parts` are all the data from `start` on, where a piece begins, to the end of a piece.
    // Returns where the first piece begins that is not what was written, or that end.
    [[nodiscard]] uint64_t right_before(uint64_t start, std::span<const iovec> parts) const;

    Descriptor file_;
    uint64_t inode_, number_, size_, header_;
    std::array<uint64_t, cache_block_size / cache_piece_size> sums_{};
};

// A block in the making. What goes wrong is remembered and ends it; nothing is thrown but
// bad_alloc.
class BlockWriter {
  public:
    // `label` and `folder` must outlive it. Counts its bytes in the folder.
    BlockWriter(CacheFolder& folder, const std::string& version, const CacheLabel& label,
                uint64_t number);
    // Removes what was not sealed.
    ~BlockWriter();
    BlockWriter(const BlockWriter&) = delete;
    BlockWriter& operator=(const BlockWriter&) = delete;

    // More of its data.
    void add(std::span<const uint8_t> bytes);
    [[nodiscard]] uint64_t size() const { return done_; }
    // Gives the block its name when all its data is there. Returns an error number; 0 too when it
    // has no room, see full().
    int seal();
    // The folder has no room for it now.
    [[nodiscard]] bool full() const { return full_; }

  private:
    void make_room();

    CacheFolder& folder_;
    const CacheLabel& label_;
    const uint64_t number_, generation_;
    const uint64_t data_size_, file_size_;
    const std::string version_, path_, part_;
    Descriptor file_;
    bool full_ = false, reserved_ = false, part_made_ = false;
    int error_ = 0;
    uint64_t done_ = 0, header_ = 0;
    std::unique_ptr<uint8_t[]> piece_;  // as far as it is not summed up
    std::vector<uint64_t> sums_;
};

}  // namespace shf
