// What was written whole and has not appeared: whoever knows this can publish or discard it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

struct SourceContext;

struct PreparedFile {
    std::string url;     // as open_sink got it; a sink leaves it out
    uint64_t size = 0;   // bytes
    std::string upload;  // by which what has appeared is known to be this
    std::string place;   // where it waits, as its home calls it; empty: `upload` says all
    std::vector<std::string> parts;  // what its home said of them; may be empty

    bool operator==(const PreparedFile&) const = default;
};

// It appears under its name. When it did already, nothing is done. Throws Error: IO (EEXIST:
// another one is there, and overwrite=false), and what its home says, also of what was discarded.
void publish_prepared(const PreparedFile& file, const SourceContext& context);

// Nothing is left of what has not appeared. Neither is it an error when it has, or was discarded.
// Throws Error.
void discard_prepared(const PreparedFile& file, const SourceContext& context);

// Discards all that was written under names of this pattern and has not appeared, of whatever
// writer, also of those that died. `pattern` is a URL; %d and %0Nd in it stand for digits. For
// paths nothing is done: what a process leaves there has its number in its name. Throws Error.
void discard_left(const std::string& pattern, const SourceContext& context);

// Whether `name` is one of `pattern`, as above.
bool is_of_pattern(std::string_view name, std::string_view pattern);
// The bytes that all names of the pattern begin with.
std::string start_of_pattern(std::string_view pattern);

}  // namespace shf
