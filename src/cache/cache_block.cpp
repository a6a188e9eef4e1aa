#include "cache/cache_block.h"

#include "cache/cache_bytes.h"
#include "cache/piece_sum.h"
#include "core/fork.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fcntl.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

namespace shf {

namespace {

constexpr std::string_view magic = "SHFBLOC2";
constexpr uint64_t page = 4096;
constexpr uint64_t fixed = 64;  // bytes of the header before the URL
// Read at once: more would not be in the L2 cache when it is summed up.
constexpr uint64_t longest_read = 512 * 1024;
constexpr size_t most_parts = 3;

uint64_t pieces_of(uint64_t data_size) {
    return (data_size + cache_piece_size - 1) / cache_piece_size;
}
uint64_t sums_at(const CacheLabel& label) {
    return (fixed + label.url.size() + label.version.size() + 7) / 8 * 8;
}
uint64_t header_size(const CacheLabel& label, uint64_t data_size) {
    return (sums_at(label) + 8 * pieces_of(data_size) + page - 1) / page * page;
}

// What the header says from its length on to its checksums: the same for all who know the shard.
std::string description(const CacheLabel& label, uint64_t number, uint64_t data_size) {
    std::string text;
    put_number(text, header_size(label, data_size));
    put_number(text, number);
    put_number(text, data_size);
    put_number(text, label.size);
    put_number(text, label.url.size());
    put_number(text, label.version.size());
    text += label.url + label.version;
    text.resize(static_cast<size_t>(sums_at(label) - 16));
    return text;
}

}  // namespace

uint64_t block_file_size(const CacheLabel& label, uint64_t data_size) {
    return header_size(label, data_size) + data_size;
}

uint64_t shard_on_disk(const CacheLabel& label) {
    const uint64_t whole = label.size / cache_block_size, rest = label.size % cache_block_size;
    const uint64_t one = on_disk(block_file_size(label, cache_block_size));
    return whole * one + (rest > 0 ? on_disk(block_file_size(label, rest)) : 0);
}

std::unique_ptr<OpenBlock> OpenBlock::open(int root, const std::string& path,
                                           const CacheLabel& label, uint64_t number,
                                           BlockLook& look) {
    look = {};
    BlockState& state = look.state;
    const int fd = ::openat(root, path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return nullptr;
    Descriptor file(fd);
    const uint64_t size = block_data_size(label, number);
    const uint64_t header = header_size(label, size);
    std::vector<uint8_t> bytes(static_cast<size_t>(header));
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) return nullptr;
    const int64_t got = read_all(file.get(), bytes, 0);
    if (got < 0) return nullptr;  // another process may be able to
    state = BlockState::damaged;
    look.inode = status.st_ino;
    if (!S_ISREG(status.st_mode) || got < static_cast<int64_t>(fixed) ||
        std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
        return nullptr;
    const uint64_t said = le64(bytes.data() + 16);
    if (said != header && said >= fixed && said % page == 0 && said < (uint64_t{1} << 24)) {
        // Whole, and of another shard with a longer or shorter name; or damaged.
        bytes.resize(static_cast<size_t>(said));
        if (read_all(file.get(), bytes, 0) == static_cast<int64_t>(said) &&
            le64(bytes.data() + 8) == piece_sum(std::span(bytes).subspan(16)))
            state = BlockState::absent;
        return nullptr;
    }
    if (got != static_cast<int64_t>(header) ||
        le64(bytes.data() + 8) != piece_sum(std::span(bytes).subspan(16)))
        return nullptr;
    const std::string wanted = description(label, number, size);
    if (std::memcmp(bytes.data() + 16, wanted.data(), wanted.size()) != 0) {
        state = BlockState::absent;
        return nullptr;
    }
    if (static_cast<uint64_t>(status.st_size) != header + size) return nullptr;
    std::unique_ptr<OpenBlock> block(
        new OpenBlock(std::move(file), look.inode, number, size, header));
    const uint8_t* sums = bytes.data() + sums_at(label);
    for (uint64_t i = 0; i < pieces_of(size); ++i) block->sums_[i] = le64(sums + 8 * i);
    state = BlockState::good;
    return block;
}

uint64_t OpenBlock::right_before(uint64_t start, std::span<const iovec> parts) const {
    uint64_t at = start;
    size_t taken = 0;  // bytes of the first part that belong to pieces before
    while (!parts.empty()) {
        const uint64_t size = std::min(cache_piece_size, size_ - at);
        std::array<iovec, most_parts> piece{};
        size_t count = 0;
        for (uint64_t rest = size; rest > 0 && !parts.empty();) {
            const iovec& part = parts.front();
            const size_t here = std::min<size_t>(static_cast<size_t>(rest), part.iov_len - taken);
            piece[count++] = {static_cast<uint8_t*>(part.iov_base) + taken, here};
            rest -= here;
            taken += here;
            if (taken == part.iov_len) {
                parts = parts.subspan(1);
                taken = 0;
            }
        }
        if (piece_sum(std::span<const iovec>(piece).first(count)) !=
            sums_[static_cast<size_t>(at / cache_piece_size)])
            break;
        at += size;
    }
    return at;
}

size_t OpenBlock::read(uint64_t offset, std::span<uint8_t> out, HeldBytes& held) const {
    size_t done = 0;
    if (held.block == number_ && offset >= held.begin && offset < held.end) {
        done = static_cast<size_t>(std::min<uint64_t>(out.size(), held.end - offset));
        std::memcpy(out.data(), held.memory->behind.data() + offset % cache_piece_size, done);
        out = out.subspan(done);
        offset += done;
    }
    if (offset >= size_ || out.empty()) return done;
    uint64_t end = offset + std::min<uint64_t>(out.size(), size_ - offset);
    if (end - offset > longest_read) end = (offset + longest_read) & ~(cache_piece_size - 1);
    const uint64_t first = offset & ~(cache_piece_size - 1);
    const uint64_t last = std::min((end + cache_piece_size - 1) & ~(cache_piece_size - 1), size_);
    if ((first < offset || end < last) && !held.memory)
        held.memory = std::make_unique_for_overwrite<HeldBytes::Memory>();
    // What comes before and behind goes elsewhere, since a checksum is of the whole piece.
    std::array<iovec, most_parts> parts{};
    size_t count = 0;
    if (first < offset) parts[count++] = {held.memory->before.data(), offset - first};
    parts[count++] = {out.data(), end - offset};
    if (end < last) {
        held.block = no_block;
        parts[count++] = {held.memory->behind.data() + end % cache_piece_size, last - end};
    }
    const std::span<const iovec> all = std::span(parts).first(count);
    if (read_all(file_.get(), all, header_ + first) != static_cast<int64_t>(last - first))
        return done;
    const uint64_t right = right_before(first, all);
    if (end < last && right == last) {
        held.block = number_;
        held.begin = end;
        held.end = last;
    }
    return right <= offset ? done : done + static_cast<size_t>(std::min(right, end) - offset);
}

// ---- Writing ------------------------------------------------------------------------------------

BlockWriter::BlockWriter(CacheFolder& folder, const std::string& version, const CacheLabel& label,
                         uint64_t number)
    : folder_(folder),
      label_(label),
      number_(number),
      generation_(fork_generation()),
      data_size_(block_data_size(label, number)),
      file_size_(block_file_size(label, data_size_)),
      version_(version),
      path_(version + "/" + block_name(number)),
      part_(version + "/" + part_name(block_name(number))),
      header_(header_size(label, data_size_)),
      piece_(std::make_unique_for_overwrite<uint8_t[]>(static_cast<size_t>(cache_piece_size))) {
    reserved_ = folder_.reserve(file_size_);
    full_ = !reserved_;
    if (full_) return;
    constexpr int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = ::openat(folder_.fd(), part_.c_str(), flags, 0600);
    if (fd < 0 && errno == ENOENT) {  // the version was evicted, or cleared
        error_ = folder_.write_label(version, label_);
        if (error_ == 0) fd = ::openat(folder_.fd(), part_.c_str(), flags, 0600);
    }
    if (fd < 0) {
        if (error_ == 0) error_ = errno;
        return;
    }
    part_made_ = true;
    file_ = Descriptor(fd);
    // Who looks for leftovers of crashed processes tries this lock.
    struct flock whole {};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    (void)::fcntl(file_.get(), F_OFD_SETLK, &whole);
}

BlockWriter::~BlockWriter() {
    // In a forked child the file is the parent's.
    if (generation_ != fork_generation()) return;
    if (part_made_) ::unlinkat(folder_.fd(), part_.c_str(), 0);
    if (reserved_) folder_.release(file_size_);
}

void BlockWriter::add(std::span<const uint8_t> bytes) {
    if (file_.get() < 0 || error_ != 0) return;
    if (bytes.size() > data_size_ - done_) {
        error_ = EFBIG;
        return;
    }
    if (done_ == 0 && bytes.size() < data_size_) make_room();
    error_ = write_all(file_.get(), bytes, header_ + done_);
    while (!bytes.empty() && error_ == 0) {
        const uint64_t before = done_ % cache_piece_size;
        const uint64_t piece = std::min(cache_piece_size, data_size_ - (done_ - before));
        const auto count = static_cast<size_t>(std::min<uint64_t>(bytes.size(), piece - before));
        if (before == 0 && count == piece) {
            sums_.push_back(piece_sum(bytes.first(count)));
        } else {
            std::memcpy(piece_.get() + before, bytes.data(), count);
            if (before + count == piece)
                sums_.push_back(piece_sum({piece_.get(), static_cast<size_t>(piece)}));
        }
        done_ += count;
        bytes = bytes.subspan(count);
    }
}

// The kernel keeps what one call writes in pieces of memory as large as that, where the file system
// can (ext4 since Linux 6.16, XFS since 5.18), and reads from large ones are half as long again as
// fast as from small ones. The data comes in small pieces; so zeros are written first, as one.
void BlockWriter::make_room() {
    static constexpr std::array<uint8_t, 64 * 1024> zeros{};
    std::vector<iovec> parts;
    for (uint64_t at = 0; at < file_size_ && parts.size() < IOV_MAX; at += zeros.size())
        parts.push_back({const_cast<uint8_t*>(zeros.data()),
                         static_cast<size_t>(std::min<uint64_t>(zeros.size(), file_size_ - at))});
    // What goes wrong here does so again when the data is written.
    (void)::pwritev(file_.get(), parts.data(), static_cast<int>(parts.size()), 0);
}

int BlockWriter::seal() {
    if (full_) return 0;
    if (error_ == 0 && (file_.get() < 0 || done_ != data_size_)) error_ = EIO;
    if (error_ != 0) return error_;
    std::string rest = description(label_, number_, data_size_);
    for (const uint64_t sum : sums_) put_number(rest, sum);
    rest.resize(static_cast<size_t>(header_ - 16));
    std::string header(magic);
    put_number(header, piece_sum(bytes_of(rest)));
    header += rest;
    error_ = write_all(file_.get(), bytes_of(header), 0);
    // The disk begins to write, and nobody waits for it: a reader in sequence would get no more
    // than the disk takes. After a loss of power the block is whole, or it is not there, or its
    // checksums say what it is. On file systems of the network close() waits, and tells what went
    // wrong.
    if (error_ == 0) (void)::sync_file_range(file_.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
    if (const int fd = file_.release(); ::close(fd) != 0 && errno != EINTR && error_ == 0)
        error_ = errno;
    if (error_ == 0 && ::renameat(folder_.fd(), part_.c_str(), folder_.fd(), path_.c_str()) != 0)
        error_ = errno;
    if (error_ != 0) return error_;
    part_made_ = false;
    reserved_ = false;  // it is what the file takes now
    // The version may have been evicted in this moment, but for the file that was in the making.
    if (::faccessat(folder_.fd(), (version_ + "/version").c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0)
        (void)folder_.write_label(version_, label_);
    return 0;
}

}  // namespace shf
