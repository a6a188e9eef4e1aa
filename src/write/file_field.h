// Files, and what URLs name, that become fields.
#pragma once

#include "io/source.h"
#include "write/container.h"

#include <cstdint>
#include <string>
#include <vector>

namespace shf {

struct Options;

// Opens a regular file. Throws FieldFileError: IO; USAGE for what is none.
FieldFile open_field(const std::string& path);

// Appends all of the file to `out`. Throws FieldFileError(CHANGED) when it is not as it was at its
// opening.
void read_field(const FieldFile& file, std::vector<uint8_t>& out);

// Appends all bytes of `source` to `out`. Throws Error, LIMIT when they are more than the option
// "memory" has.
void read_source(Source& source, const Options& options, std::vector<uint8_t>& out);

// Appends a file to a shard. Returns the CRC-32 of the bytes.
uint32_t copy_file(const FieldFile& file, ShardOutput& output);

// The CRC-32 of the file's bytes. Throws FieldFileError(CHANGED).
uint32_t crc32_of(const FieldFile& file);

}  // namespace shf
