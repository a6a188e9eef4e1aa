#include "cli/sample_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

namespace cli {

namespace {

Stream open_stream(const std::vector<std::string>& urls, const shf_options* options) {
    std::vector<const char*> names;
    for (const std::string& url : urls) names.push_back(url.c_str());
    shf_stream* stream = nullptr;
    call(shf_stream_open, &stream, names.data(), names.size(), options);
    return Stream(stream);
}

}  // namespace

StreamSource::StreamSource(const std::vector<std::string>& urls, const shf_options* options)
    : stream_(open_stream(urls, options)), cancellable_(stream_.get()) {}

Sample StreamSource::next() {
    if (!block_ || in_block_ == shf_block_sample_count(block_.get())) {
        block_.reset();
        in_block_ = 0;
        shf_block* block = nullptr;
        if (call(shf_stream_next_block, stream_.get(), size_t{0}, &block) == SHF_END)
            return nullptr;
        block_.reset(block);
    }
    return Sample(shf_sample_ref(shf_block_sample(block_.get(), in_block_++)));
}

RoundRobinSource::RoundRobinSource(const std::vector<std::string>& urls, size_t open,
                                   const LibraryOptions& options)
    : urls_(expanded(urls, options.handle())), open_(open), options_(options.copy()) {
    call(shf_options_set, options_.get(), "expand", "false");
    if (!options.given("threads")) call(shf_options_set, options_.get(), "threads", "1");
    while (ring_.size() < open_ && next_url_ < urls_.size()) open_more();
}

Sample RoundRobinSource::next() {
    while (!ring_.empty()) {
        std::unique_ptr<StreamSource> source = std::move(ring_.front());
        ring_.pop_front();
        if (Sample sample = source->next()) {
            ring_.push_back(std::move(source));
            return sample;
        }
        if (next_url_ < urls_.size()) open_more();
    }
    return nullptr;
}

void RoundRobinSource::open_more() {
    const std::vector<std::string> url = {urls_[next_url_++]};
    ring_.push_back(std::make_unique<StreamSource>(url, options_.get()));
}

std::vector<std::string> expanded(const std::vector<std::string>& urls,
                                  const shf_options* options) {
    std::vector<const char*> names;
    for (const std::string& url : urls) names.push_back(url.c_str());
    std::vector<std::string> made;
    const shf_url_fn each = [](void* ctx, const char* url, size_t size) -> int32_t {
        // What opens one archive takes a folder that is called ~ for that of the user.
        std::string name(url, size);
        if (name.starts_with("~/")) name.insert(0, "./");
        static_cast<std::vector<std::string>*>(ctx)->push_back(std::move(name));
        return 0;
    };
    call(shf_expand_urls, names.data(), names.size(), options, each, static_cast<void*>(&made));
    return made;
}

uint64_t local_bytes(const std::vector<std::string>& urls) {
    uint64_t sum = 0;
    for (const std::string& url : urls) {
        struct stat info = {};
        if (::stat(url.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return 0;
        sum += static_cast<uint64_t>(info.st_size);
    }
    return sum;
}

}  // namespace cli
