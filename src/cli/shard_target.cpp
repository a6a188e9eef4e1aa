#include "cli/shard_target.h"

#include "cli/shell.h"
#include "cli/terminal.h"

#include <unistd.h>

namespace cli {

namespace {

shf_writer* open_writer(const std::string& pattern, const LibraryOptions& options) {
    if (pattern == "-" && ::isatty(STDOUT_FILENO) == 1)
        throw Failure(wrong_command_line,
                      "a shard is not written to a terminal; help: give a file with -o FILE");
    if (options.get("prepare") == "true")
        throw Failure(wrong_command_line,
                      "prepare: nobody would get the tokens of the shards; help: leave it out: it "
                      "is for programs");
    shf_writer* writer = nullptr;
    call(shf_writer_open, &writer, pattern.c_str(), options.handle());
    return writer;
}

}  // namespace

ShardTarget::ShardTarget(const std::string& pattern, const LibraryOptions& options, Report report)
    : writer_(open_writer(pattern, options)),
      cancellable_(writer_.get()),
      report_(std::move(report)) {
    if (report_.json && pattern == "-")
        throw Failure(wrong_command_line,
                      "--json and the shard want standard output both; help: give a file with -o");
}

void ShardTarget::finish() {
    call(shf_writer_finish, writer_.get());
    report();
}

std::string ShardTarget::shard_text(uint64_t shard, int32_t what) const {
    shf_bytes bytes = {};
    const int32_t code = shf_writer_shard_text(writer_.get(), shard, what, &bytes);
    return code == SHF_OK ? std::string(text(bytes)) : std::string();
}

void ShardTarget::report_new() {
    while (reported_ < shf_writer_shards(writer_.get())) {
        const uint64_t shard = reported_++;
        const std::string url = shard_text(shard, SHF_SHARD_URL);
        const auto info = [&](int32_t what) {
            return shf_writer_shard_info(writer_.get(), shard, what);
        };
        if (report_.json) {
            Output out;
            out.write("{\"shard\":" + json_text(url) +
                      ",\"samples\":" + std::to_string(info(SHF_SHARD_SAMPLES)) +
                      ",\"bytes\":" + std::to_string(info(SHF_SHARD_BYTES)) +
                      ",\"payload\":" + std::to_string(info(SHF_SHARD_PAYLOAD)) +
                      ",\"digest\":" + json_text(shard_text(shard, SHF_SHARD_DIGEST)) + "}\n");
            out.flush();
        }
        if (!report_.command.empty()) run_for_shard(report_.command, url);
    }
}

}  // namespace cli
