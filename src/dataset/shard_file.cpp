#include "dataset/shard_file.h"

#include "core/error.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace shf {

namespace {

std::atomic<int64_t> kept_open{0};  // by all datasets

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

ShardFile::ShardFile(std::string url, std::unique_ptr<Source> source, const Options& options,
                     const Cancel& cancel, FileBudget& budget)
    : url_(std::move(url)),
      version_(source->version()),
      options_(options),
      cancel_(cancel),
      budget_(budget) {
    if (budget_.take()) kept_ = source.release();
}

ShardFile::~ShardFile() {
    delete kept_.load(std::memory_order_relaxed);
}

std::unique_ptr<Source> ShardFile::open() const {
    auto source = open_source(url_, options_, cancel_);
    if (source->version() != version_)
        throw Error(SHF_E_CHANGED, "the file is not the one that the dataset was opened with",
                    "let no program write to shards that are in use; open the dataset again");
    return source;
}

ShardFile::Lease::Lease(const ShardFile& file)
    : source_(file.kept_.load(std::memory_order_acquire)) {
    if (source_) return;
    own_ = file.open();
    source_ = own_.get();
}

}  // namespace shf
