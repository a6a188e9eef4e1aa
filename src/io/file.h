// Local files.
#pragma once

#include "io/source.h"

#include <string>

namespace shf {

// Opens what is at `path`: a regular file, or a FIFO or device as descriptor_source does. Never
// waits for a writer inside open(). `silence` as for descriptor_source.
std::unique_ptr<Source> file_source(const std::string& path, const Cancel& cancel,
                                    uint64_t silence = 0);

// The bytes of a whole file or of a FIFO, at most `limit` of them; throws Error(LIMIT) when there
// are more. `silence` as for descriptor_source.
std::string read_whole_file(const std::string& path, uint64_t limit, const Cancel& cancel,
                            uint64_t silence);

// Whether this is a "file:" URL; schemes have no case (RFC 3986, 3.1).
bool is_file_url(std::string_view url);

// The path of a "file:" URL (RFC 8089). Throws Error(USAGE).
std::string path_of_file_url(std::string_view url);

}  // namespace shf
