#include "dataset/shard_file.h"

#include "core/error.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace shf {

FileBudget::FileBudget() {
    rlimit limit{};
    const bool known = ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    left_ = std::min<int64_t>(known ? static_cast<int64_t>(limit.rlim_cur / 2) : 4096, 4096);
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
