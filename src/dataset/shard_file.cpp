#include "dataset/shard_file.h"

#include "core/error.h"
#include "core/process_count.h"
#include "io/descriptor.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace shf {

namespace {

std::atomic<int64_t> kept_open{0};  // by all datasets
ProcessCount leased;                // files that are open for the time of a read, or about to be
std::atomic<uint64_t> returned{0};  // how often one of these was closed

}  // namespace

// Is counted from before the file is opened until after it is closed: whoever gets no descriptor
// then sees all that have one.
struct ShardFile::Lease::Opened {
    Opened() { leased.add(1); }
    ~Opened() {
        if (source) {
            source.reset();
            returned.fetch_add(1);
        }
        leased.add(-1);
    }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;

    std::unique_ptr<Source> source;
};

FileBudget::FileBudget() {
    rlimit limit{};
    const bool known = ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    most_ = std::min<int64_t>(known ? static_cast<int64_t>(limit.rlim_cur / 2) : 4096, 4096);
}

FileBudget::~FileBudget() {
    kept_open.fetch_sub(taken_.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

bool FileBudget::take() {
    if (kept_open.fetch_add(1, std::memory_order_relaxed) < most_) {
        taken_.fetch_add(1, std::memory_order_relaxed);
        return true;
    }
    kept_open.fetch_sub(1, std::memory_order_relaxed);
    return false;
}

void FileBudget::give_back() {
    taken_.fetch_sub(1, std::memory_order_relaxed);
    kept_open.fetch_sub(1, std::memory_order_relaxed);
}

ShardFile::ShardFile(std::string url, std::unique_ptr<Source> source, const Sources& sources,
                     FileBudget& budget, const UnpackedShard* unpacked)
    : url_(std::move(url)),
      identity_(source->identity()),
      seen_(source->seen()),
      sources_(sources),
      budget_(budget),
      unpacked_(unpacked) {
    if (budget_.take()) kept_ = source.release();
}

ShardFile::~ShardFile() {
    const Source* const kept = kept_.load(std::memory_order_relaxed);
    delete kept;
    if (kept) budget_.give_back();
}

// Without a descriptor it waits for other threads, which close theirs soon.
std::unique_ptr<ShardFile::Lease::Opened> ShardFile::open() const {
    constexpr std::chrono::milliseconds shortest{1}, longest{50};
    auto wait = shortest;
    for (;;) {
        const uint64_t before = returned.load();
        try {
            auto opened = std::make_unique<Lease::Opened>();
            opened->source = sources_.open(url_);
            return opened;
        } catch (const Error& error) {
            if (!lacks_descriptor(error)) throw;
            const bool nobody_has_one = leased.get() <= 0;
            const bool some_came_back = returned.load() != before;
            if (nobody_has_one && !some_came_back) throw;
            // Others that only try, and will fail too, must not be met each time.
            wait = some_came_back ? shortest : std::min(2 * wait, longest);
        }
        std::this_thread::sleep_for(wait);
    }
}

ShardFile::Lease::Lease(const ShardFile& file)
    : source_(file.kept_.load(std::memory_order_acquire)) {
    if (!source_) {
        own_ = file.open();
        source_ = own_->source.get();
        if (source_->identity() != file.identity_)
            throw Error(SHF_E_CHANGED, "the file is not the one that the dataset was opened with",
                        "let no program write to shards that are in use; open the dataset again");
        source_->take_over(file.seen_);
    }
    if (file.unpacked_) source_ = &unpacked_.emplace(*source_, *file.unpacked_);
}

ShardFile::Lease::~Lease() = default;

bool ShardFile::keeps(const Source& source) const {
    return kept_.load(std::memory_order_acquire) == &source;
}

}  // namespace shf
