// Sinks for files and for what is open already.
#pragma once

#include "io/descriptor.h"
#include "io/sink.h"

namespace shf {

struct Options;

// A file that appears under `path` when it is published, and has another name in the same folder
// until then.
std::unique_ptr<Sink> file_sink(const std::string& path, const Options& options);

// publish_prepared() and discard_prepared() of what a file_sink() has prepared.
void publish_prepared_path(const PreparedFile& file, const Options& options);
void discard_prepared_path(const PreparedFile& file);

// Standard output. Throws Error(USAGE) while another writer in this process has it, and for a
// terminal.
std::unique_ptr<Sink> stdout_sink(const Cancel& cancel);

// Writes all of `bytes` to what may not take them at once, such as a pipe. No SIGPIPE arises.
// Throws Error: NOSPACE, IO, CANCELLED.
void write_all(int fd, std::span<const uint8_t> bytes, const Cancel& cancel);

}  // namespace shf
