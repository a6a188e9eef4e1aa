// Where samples go: a writer of the library, with what the command says of its shards.
#pragma once

#include "cli/interrupts.h"
#include "cli/library.h"
#include "cli/library_options.h"

#include <string>
#include <string_view>

namespace cli {

class ShardTarget {
  public:
    struct Report {
        bool json = false;         // a line of JSON for each shard to standard output
        std::string command = {};  // a shell command for each shard; empty: none
    };

    // `pattern` as shf_writer_open has it. Throws Failure; standard output must be no terminal.
    ShardTarget(const std::string& pattern, const LibraryOptions& options, Report report);

    void begin(std::string_view key) {
        call(shf_writer_begin, writer_.get(), key.data(), key.size());
    }
    // The bytes stay as they are until end() returns.
    void field(std::string_view name, shf_bytes data) {
        call(shf_writer_field_borrowed, writer_.get(), name.data(), name.size(),
             static_cast<const void*>(data.data), data.size);
    }
    void field_file(std::string_view name, const std::string& path) {
        call(shf_writer_field_file, writer_.get(), name.data(), name.size(), path.c_str());
    }
    void field_url(std::string_view name, const std::string& url) {
        call(shf_writer_field_url, writer_.get(), name.data(), name.size(), url.c_str());
    }
    void end() {
        call(shf_writer_end, writer_.get());
        report();
    }
    void write(const shf_sample* sample) {
        call(shf_writer_write, writer_.get(), sample);
        report();
    }
    void next_shard() { call(shf_writer_next_shard, writer_.get()); }
    // Publishes the last shard. Throws Failure when a command failed.
    void finish();

  private:
    using Writer = std::unique_ptr<shf_writer, Releaser<shf_writer_close>>;

    void report() {
        if (shf_writer_shards(writer_.get()) > reported_) report_new();
    }
    void report_new();
    [[nodiscard]] std::string shard_text(uint64_t shard, int32_t what) const;

    Writer writer_;
    Cancellable cancellable_;
    const Report report_;
    uint64_t reported_ = 0;
};

}  // namespace cli
