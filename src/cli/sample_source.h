// Where samples come from: streams over the shards of the command line.
#pragma once

#include "cli/interrupts.h"
#include "cli/library.h"
#include "cli/library_options.h"

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cli {

class SampleSource {
  public:
    SampleSource() = default;
    virtual ~SampleSource() = default;
    SampleSource(const SampleSource&) = delete;
    SampleSource& operator=(const SampleSource&) = delete;

    // The next sample, or none at the end. Throws Failure.
    virtual Sample next() = 0;
};

// A stream of the library over all URLs.
class StreamSource final : public SampleSource {
  public:
    StreamSource(const std::vector<std::string>& urls, const shf_options* options);
    Sample next() override;

  private:
    Stream stream_;
    Cancellable cancellable_;
    Block block_;
    size_t in_block_ = 0;
};

// `open` streams at a time, one for each URL, which give a sample each in turn. When one ends, the
// next URL takes a place at the end of the ring.
class RoundRobinSource final : public SampleSource {
  public:
    RoundRobinSource(const std::vector<std::string>& urls, size_t open,
                     const LibraryOptions& options);
    Sample next() override;

  private:
    void open_more();

    std::vector<std::string> urls_;
    size_t next_url_ = 0;
    const size_t open_;
    Options options_;
    std::deque<std::unique_ptr<StreamSource>> ring_;
};

// URLs as the library expands them.
std::vector<std::string> expanded(const std::vector<std::string>& urls, const shf_options* options);

// The bytes of the local files among `urls`, for a progress line; 0 when one is no such file.
uint64_t local_bytes(const std::vector<std::string>& urls);

}  // namespace cli
