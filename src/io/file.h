// Local files.
#pragma once

#include "io/source.h"

#include <string>

namespace shf {

// Opens what is at `path`: a regular file, or a FIFO or device as descriptor_source does. Never
// waits for a writer inside open(). `silence` as for descriptor_source. With `mapped` a regular
// file has a mapping(), where its file system allows one.
std::unique_ptr<Source> file_source(const std::string& path, const Cancel& cancel,
                                    uint64_t silence = 0, bool mapped = false);

// What is at `path` now, without opening it. Throws Error.
Identity identity_of_file(const std::string& path);

// The bytes of a whole file or of a FIFO, at most `limit` of them; throws Error(LIMIT) when there
// are more. `silence` as for descriptor_source.
std::string read_whole_file(const std::string& path, uint64_t limit, const Cancel& cancel,
                            uint64_t silence);

}  // namespace shf
