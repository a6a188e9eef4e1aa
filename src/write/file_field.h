// Files that become fields.
#pragma once

#include "write/container.h"

#include <cstdint>
#include <string>
#include <vector>

namespace shf {

// Opens a regular file. Throws FieldFileError: IO; USAGE for what is none.
FieldFile open_field(const std::string& path);

// Appends all of the file to `out`. Throws FieldFileError(CHANGED) when it is not as it was at its
// opening.
void read_field(const FieldFile& file, std::vector<uint8_t>& out);

// The same to a shard. Returns the CRC-32 of the bytes.
uint32_t copy_file(const FieldFile& file, ShardOutput& output);

// The CRC-32 of the file's bytes. Throws FieldFileError(CHANGED).
uint32_t crc32_of(const FieldFile& file);

}  // namespace shf
