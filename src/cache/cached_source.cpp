#include "cache/cached_source.h"

#include "cache/cache_url.h"
#include "cache/cached_shard.h"
#include "core/cancel.h"
#include "core/options.h"
#include "io/sources.h"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

namespace shf {

namespace {

// Blocks that a reader in sequence locks ahead of itself.
constexpr uint64_t window = 8;

Error too_short() {
    return Error(SHF_E_TRUNCATED, "the shard became shorter while it was read", shrunk_help);
}

// A stretch of a source from front to back, which is asked for as one.
class Stretch final : public Sequential {
  public:
    Stretch(Source& source, uint64_t begin, uint64_t end) : source_(source), at_(begin), end_(end) {
        const ByteRange range{begin, end - begin};
        source_.prefetch({&range, 1});
    }
    size_t read(std::span<uint8_t> out) override {
        out = out.first(static_cast<size_t>(std::min<uint64_t>(out.size(), end_ - at_)));
        if (out.empty()) return 0;
        const size_t count = source_.read(at_, out);
        at_ += count;
        return count;
    }
    bool ready() override { return false; }

  private:
    Source& source_;
    uint64_t at_;
    const uint64_t end_;
};

// From front to back: what is missing is delivered as it comes, and written beside.
class CachedSequential final : public Sequential {
  public:
    CachedSequential(std::shared_ptr<CachedShard> shard, uint64_t offset)
        : shard_(std::move(shard)), at_(offset) {}

    size_t read(std::span<uint8_t> out) override {
        while (at_ < size() && !out.empty()) {
            const uint64_t number = at_ / cache_block_size;
            if (fetching_ == number) return pull(out);
            if (!block_ || block_->number() != number) begin(number);
            if (!block_) continue;
            if (const size_t count = block_->read(at_ % cache_block_size, out, held_)) {
                shard_->count_cached(count);
                at_ += count;
                return count;
            }
            shard_->drop(*std::exchange(block_, nullptr));
            shard_->check_cancel();
        }
        return 0;
    }

    bool skip(uint64_t size_of_gap) override {
        if (at_ > size() || size_of_gap > size() - at_) return false;
        if (stream_ && size_of_gap < shard_->remote()->read_cost().at_once) return false;
        stop_fetching();
        at_ += size_of_gap;
        return true;
    }

    bool ready() override {
        if (at_ >= size() || (block_ && block_->number() == at_ / cache_block_size)) return true;
        if (fetching_ == at_ / cache_block_size) return stream_at_ == at_ && stream_->ready();
        // Who fetches has locks to give back first.
        if (stream_ || claimed_ < claimed_end_) return shard_->has(at_ / cache_block_size);
        block_ = shard_->open_block(at_ / cache_block_size);
        return block_ != nullptr;
    }

    void finish() override {
        // Another one proves that the shard ended there.
        if (stream_ && stream_end_ == size() && stream_at_ == size()) {
            uint8_t more = 0;
            if (stream_->read({&more, 1}) > 0)
                throw Error(SHF_E_CHANGED, "the shard has more bytes than when it was opened",
                            shrunk_help);
            try {
                stream_->finish();
            } catch (const Error& error) {
                // What came is not what the server has: nobody is served that again.
                if (error.code() == SHF_E_INTEGRITY) shard_->remove();
                throw;
            }
        }
    }

  private:
    [[nodiscard]] uint64_t size() const { return shard_->label().size; }

    // Opens the block, or begins to fetch it.
    void begin(uint64_t number) {
        block_.reset();
        const bool locked = number >= claimed_ && number < claimed_end_;
        if (locked) block_ = shard_->open_block(number);  // by one who did not wait for us
        Turn turn = block_ ? Turn::cached : Turn::mine;
        if (!locked) {
            release();
            uint64_t count = 0;
            turn = shard_->await(number, std::min(window, shard_->blocks() - number), locks_, count,
                                 block_);
            claimed_ = number;
            claimed_end_ = number + count;
        }
        if (turn == Turn::cached) {
            stop_fetching();
            return;
        }
        writer_ = shard_->new_block(number);
        // What is kept is kept from the start of its block on.
        const uint64_t from = writer_ ? number * cache_block_size : at_;
        if (!stream_ || stream_at_ != from || from == stream_end_) {
            stream_.reset();
            const uint64_t end = shard_->next_present(number);
            stream_end_ = std::min(end * cache_block_size, size());
            Source& remote = *shard_->remote();
            if (stream_end_ == size())
                stream_ = remote.open_sequential(from);
            else
                stream_ = std::make_unique<Stretch>(remote, from, stream_end_);
            stream_at_ = from;
        }
        fetching_ = number;
    }

    size_t pull(std::span<uint8_t> out) {
        const uint64_t end = std::min((fetching_ + 1) * cache_block_size, size());
        while (stream_at_ < at_) {  // the start of a block whose middle is wanted
            if (!scratch_)
                scratch_ = std::make_unique_for_overwrite<uint8_t[]>(
                    static_cast<size_t>(cache_piece_size));
            (void)take({scratch_.get(),
                        static_cast<size_t>(std::min(cache_piece_size, at_ - stream_at_))});
        }
        const size_t count =
            take(out.first(static_cast<size_t>(std::min<uint64_t>(out.size(), end - at_))));
        at_ += count;
        if (at_ == end) end_block();
        return count;
    }

    size_t take(std::span<uint8_t> out) {
        const size_t count = stream_->read(out);
        if (count == 0) throw too_short();
        stream_at_ += count;
        if (writer_) writer_->add(out.first(count));
        if (claimed_ < claimed_end_) locks_.beat();
        return count;
    }

    void end_block() {
        const uint64_t number = std::exchange(fetching_, no_block);
        if (writer_) {
            shard_->seal(*writer_, number);
            writer_.reset();
        }
        if (claimed_end_ <= number) return;
        locks_.unlock(number, 1);
        claimed_ = number + 1;
        const uint64_t held = claimed_end_ - claimed_;
        if (held < window / 2 && claimed_end_ < shard_->blocks())
            claimed_end_ += locks_.try_lock(
                claimed_end_, std::min(window - held, shard_->blocks() - claimed_end_));
    }

    void release() {
        if (claimed_ < claimed_end_) locks_.unlock(claimed_, claimed_end_ - claimed_);
        claimed_ = claimed_end_ = 0;
    }
    void stop_fetching() {
        fetching_ = no_block;
        writer_.reset();
        stream_.reset();
        release();
    }

    const std::shared_ptr<CachedShard> shard_;
    uint64_t at_;
    std::unique_ptr<OpenBlock> block_;
    HeldBytes held_;
    BlockLocks locks_;
    uint64_t claimed_ = 0, claimed_end_ = 0;  // blocks that are locked
    uint64_t fetching_ = no_block;
    std::unique_ptr<BlockWriter> writer_;
    std::unique_ptr<Sequential> stream_;
    uint64_t stream_at_ = 0;
    uint64_t stream_end_ = 0;  // the end of the shard, or of what is missing there
    std::unique_ptr<uint8_t[]> scratch_;
};

class CachedSource final : public Source {
  public:
    explicit CachedSource(std::shared_ptr<CachedShard> shard) : shard_(std::move(shard)) {}

    [[nodiscard]] std::optional<uint64_t> size() const override { return shard_->label().size; }
    [[nodiscard]] Identity identity() const override {
        const CacheLabel& label = shard_->label();
        return {
            .size = label.size, .modified = label.modified, .tag = {}, .version = label.version};
    }
    [[nodiscard]] ReadCost read_cost() const override {
        return shard_->is_whole() || !shard_->remote() ? ReadCost() : shard_->remote()->read_cost();
    }
    [[nodiscard]] bool seekable() const override { return true; }
    void verify() override {
        if (shard_->remote()) shard_->remote()->verify();
    }

    void prefetch(std::span<const ByteRange> ranges) override {
        if (!shard_->remote() || shard_->is_whole()) return;
        std::vector<ByteRange> missing;
        uint64_t looks = 0;
        for (const auto& [offset, length] : ranges) {
            if (length == 0 || offset >= *size()) continue;
            const uint64_t last = (offset + std::min(length, *size() - offset) - 1);
            for (uint64_t number = offset / cache_block_size; number <= last / cache_block_size;
                 ++number) {
                if (++looks > most_looks) break;
                if (shard_->has(number)) continue;
                const uint64_t start = number * cache_block_size;
                const uint64_t bytes = block_data_size(shard_->label(), number);
                if (!missing.empty() && missing.back().offset + missing.back().size == start)
                    missing.back().size += bytes;
                else if (missing.empty() || missing.back().offset + missing.back().size < start)
                    missing.push_back({start, bytes});
            }
        }
        if (!missing.empty()) shard_->remote()->prefetch(missing);
    }

    size_t read(uint64_t offset, std::span<uint8_t> out) override {
        if (offset >= *size()) return 0;
        out = out.first(static_cast<size_t>(std::min<uint64_t>(out.size(), *size() - offset)));
        HeldBytes held;
        std::unique_ptr<OpenBlock> block;
        BlockLocks locks;
        uint64_t announced = 0;  // what comes before this block was announced to the remote
        for (size_t done = 0; done < out.size();) {
            const uint64_t number = (offset + done) / cache_block_size;
            const uint64_t before = (offset + done) % cache_block_size;
            const auto rest = out.subspan(done);
            if (!block || block->number() != number) block = shard_->open_block(number);
            if (block) {
                const size_t count = block->read(before, rest, held);
                if (count == 0) {
                    shard_->drop(*std::exchange(block, nullptr));
                    shard_->check_cancel();
                }
                shard_->count_cached(count);
                done += count;
                continue;
            }
            // What came with the opening is not waited for again; who reads on keeps the block.
            if (Source* remote = shard_->remote();
                remote && remote->at_hand() < block_data_size(shard_->label(), 0) &&
                offset + out.size() <= remote->at_hand()) {
                if (remote->read(offset + done, rest) < rest.size()) throw too_short();
                return out.size();
            }
            const uint64_t last = (offset + out.size() - 1) / cache_block_size;
            if (number >= announced && number < last && shard_->remote()) {
                const uint64_t end = std::min(shard_->next_present(number), last + 1);
                const ByteRange run{
                    number * cache_block_size,
                    std::min(end * cache_block_size, *size()) - number * cache_block_size};
                if (end > number + 1) shard_->remote()->prefetch({&run, 1});
                announced = end;
            }
            uint64_t locked = 0;
            if (shard_->await(number, 1, locks, locked, block) == Turn::cached) continue;
            done += fetch(number, before, rest);
            locks.unlock(number, locked);
        }
        return out.size();
    }

    std::unique_ptr<Sequential> open_sequential(uint64_t offset) override {
        return std::make_unique<CachedSequential>(shard_, offset);
    }

  private:
    static constexpr uint64_t most_looks = 4096;

    // Reads what is wanted of a block that is not there, and keeps the block. Returns the count.
    size_t fetch(uint64_t number, uint64_t before, std::span<uint8_t> out) {
        const uint64_t start = number * cache_block_size;
        const auto size = static_cast<size_t>(block_data_size(shard_->label(), number));
        const size_t count = std::min(out.size(), size - static_cast<size_t>(before));
        out = out.first(count);
        Source& remote = *shard_->remote();
        const auto writer = shard_->new_block(number);
        if (!writer) {
            if (remote.read(start + before, out) < count) throw too_short();
            return count;
        }
        std::unique_ptr<uint8_t[]> bytes;
        std::span<uint8_t> whole = out;
        if (count < size) {
            bytes = std::make_unique_for_overwrite<uint8_t[]>(size);
            whole = {bytes.get(), size};
        }
        if (remote.read(start, whole) < size) throw too_short();
        writer->add(whole);
        shard_->seal(*writer, number);
        if (bytes)
            std::copy_n(whole.subspan(static_cast<size_t>(before)).begin(), count, out.begin());
        return count;
    }

    const std::shared_ptr<CachedShard> shard_;
};

// ---- Opening ------------------------------------------------------------------------------------

// The version of the shard that was opened last, as far as the cache knows.
std::optional<CacheLabel> newest(const CacheFolder& folder, const std::string& url) {
    std::optional<CacheLabel> found;
    int64_t used = -1;
    for (const CachedVersion& version : folder.versions(url_folder(url))) {
        CacheLabel label;
        if (version.used > used && folder.read_label(version.path, label) && label.url == url) {
            found = std::move(label);
            used = version.used;
        }
    }
    return found;
}

bool is_network_fault(const Error& error) {
    return error.code() == SHF_E_NET_TRANSIENT || error.code() == SHF_E_TIMEOUT;
}

// Runs `ask`, or gives the version of the cache when that fails for the network.
template <typename Ask, typename Stale>
auto ask_or_stale(const std::string& url, const Options& options, Ask ask, Stale stale) {
    try {
        return ask();
    } catch (const Error& error) {
        if (!options.stale_ok || !is_network_fault(error)) throw;
        std::optional<CacheFolder> folder;
        std::optional<CacheLabel> label;
        try {
            folder.emplace(options.cache, options.cache_size, false);
            label = newest(*folder, cache_url(url));
        } catch (const Error&) {  // no cache: what the network said counts
        }
        if (!label) throw;
        return stale(std::move(*folder), std::move(*label), error);
    }
}

// Whether the server says which version the bytes are of, and gives any of them.
bool can_be_kept(const Source& remote) {
    const Identity identity = remote.identity();
    return remote.seekable() && identity.size && !identity.version.empty() &&
           !identity.version.starts_with("W/");
}

// The shard itself. Who is the first to want it gets its first bytes with the answer; all others,
// later and at the same time, find them in the cache.
std::unique_ptr<Source> open_remote(const Scheme& scheme, const std::string& url,
                                    const SourceContext& context,
                                    const std::optional<CacheFolder>& folder) {
    if (!folder) return scheme.open(url, context);
    const std::string place = url_folder(cache_url(url));
    const int made = folder->make_url(place);
    try {
        if (made == EEXIST) {
            auto remote =
                scheme.open(url, {context.options, context.cancel, context.use, /*brief=*/true});
            if (can_be_kept(*remote)) return remote;
        }
        return scheme.open(url, context);
    } catch (...) {
        if (made == 0) folder->remove_empty(place);
        throw;
    }
}

}  // namespace

std::unique_ptr<Source> open_cached(const Scheme& scheme, const std::string& url,
                                    const SourceContext& context) {
    const Options& options = context.options;
    const auto warn = [&](SourceTrouble trouble, const std::string& message) {
        warn_once(trouble, message, context);
    };
    return ask_or_stale(
        url, options,
        [&]() -> std::unique_ptr<Source> {
            std::optional<CacheFolder> folder;
            std::string trouble;
            try {
                folder.emplace(options.cache, options.cache_size, true);
            } catch (const Error& error) {
                trouble = error.what();
            }
            auto remote = open_remote(scheme, url, context, folder);
            const Identity identity = remote->identity();
            if (!can_be_kept(*remote)) {
                warn(SourceTrouble::cache_version,
                     cache_url(url) + ": not cached, since its server " +
                         (remote->seekable() ? "names no version of it (a strong ETag)"
                                             : "gives no byte ranges of it"));
                return remote;
            }
            CacheLabel label{cache_url(url), identity.version, *identity.size, identity.modified};
            if (label.size == 0) return remote;
            if (options.cache_size > 0 && shard_on_disk(label) + 4096 > options.cache_size)
                throw Error(SHF_E_LIMIT,
                            "the shard takes " + std::to_string(shard_on_disk(label) + 4096) +
                                " bytes of the cache, more than cache_size=" +
                                std::to_string(options.cache_size),
                            "raise cache_size, or leave out cache");
            if (!folder) {
                warn(SourceTrouble::cache_folder, "shards are read without the cache: " + trouble);
                return remote;
            }
            return std::make_unique<CachedSource>(std::make_shared<CachedShard>(
                std::move(*folder), std::move(label), std::move(remote), std::nullopt, context));
        },
        [&](CacheFolder folder, CacheLabel label, const Error& error) -> std::unique_ptr<Source> {
            warn(SourceTrouble::cache_stale,
                 label.url +
                     ": its version in the cache is read, since its server "
                     "cannot be asked: " +
                     error.what());
            return std::make_unique<CachedSource>(std::make_shared<CachedShard>(
                std::move(folder), std::move(label), nullptr, error.fault(), context));
        });
}

Identity stat_cached(const Scheme& scheme, const std::string& url, const SourceContext& context) {
    return ask_or_stale(
        url, context.options, [&] { return scheme.stat(url, context); },
        [](const CacheFolder&, const CacheLabel& label, const Error&) {
            return Identity{.size = label.size,
                            .modified = label.modified,
                            .tag = {},
                            .version = label.version};
        });
}

void add_cache() {
    static const bool added = [] {
        Sources::read_through({open_cached, stat_cached});
        return true;
    }();
    (void)added;
}

}  // namespace shf
