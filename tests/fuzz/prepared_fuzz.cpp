// The first byte chooses: a token as it is; the lines of one, to which the right sum is added, and
// which is then written again; a pattern, and behind the first line break a name.
#include "core/error.h"
#include "write/prepared_shard.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
    if (data[0] == 'p') {
        const size_t line = text.find('\n');
        const std::string_view pattern = std::string_view(text).substr(0, line);
        const std::string start = shf::start_of_pattern(pattern);
        if (line != text.npos) {
            const std::string_view name = std::string_view(text).substr(line + 1);
            if (shf::is_of_pattern(name, pattern) && !name.starts_with(start)) std::abort();
        }
        return 0;
    }
    if (data[0] == 's') {
        char sum[32];
        std::snprintf(sum, sizeof sum, "sum %016llx\n",
                      static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
        text += sum;
    }
    try {
        const shf::PreparedShard shard = shf::parse_token(text);
        if (shf::parse_token(shf::token_of(shard)) != shard) std::abort();
    } catch (const shf::Error&) {  // what bad input is to give
    }
    return 0;
}
