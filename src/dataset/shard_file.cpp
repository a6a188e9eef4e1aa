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
ProcessCount leased;                // files that are open for the time of a read

}  // namespace

FileBudget::FileBudget() {
    rlimit limit{};
    const bool known = ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    most_ = std::min<int64_t>(known ? static_cast<int64_t>(limit.rlim_cur / 2) : 4096, 4096);
}

FileBudget::~FileBudget() {
    kept_open.fetch_sub(taken_, std::memory_order_relaxed);
}

bool FileBudget::take() {
    if (kept_open.fetch_add(1, std::memory_order_relaxed) < most_) {
        ++taken_;
        return true;
    }
    kept_open.fetch_sub(1, std::memory_order_relaxed);
    return false;
}

ShardFile::ShardFile(std::string url, std::unique_ptr<Source> source, const Sources& sources,
                     FileBudget& budget)
    : url_(std::move(url)),
      identity_(source->identity()),
      seen_(source->seen()),
      sources_(sources),
      budget_(budget) {
    if (budget_.take()) kept_ = source.release();
}

ShardFile::~ShardFile() {
    delete kept_.load(std::memory_order_relaxed);
}

// Other threads that have no descriptor for long will close the one they have.
std::unique_ptr<Source> ShardFile::open_source_patiently() const {
    for (;;) {
        try {
            return sources_.open(url_);
        } catch (const Error& error) {
            if (!lacks_descriptor(error) || leased.get() <= 0) throw;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

std::unique_ptr<Source> ShardFile::open() const {
    auto source = open_source_patiently();
    if (source->identity() != identity_)
        throw Error(SHF_E_CHANGED, "the file is not the one that the dataset was opened with",
                    "let no program write to shards that are in use; open the dataset again");
    source->take_over(seen_);
    return source;
}

ShardFile::Lease::Lease(const ShardFile& file)
    : source_(file.kept_.load(std::memory_order_acquire)) {
    if (source_) return;
    own_ = file.open();
    source_ = own_.get();
    leased.add(1);
}

ShardFile::Lease::~Lease() {
    if (!own_) return;
    own_.reset();
    leased.add(-1);
}

}  // namespace shf
