#include "io/source.h"

namespace shf {

size_t Source::read_scattered(uint64_t offset, std::span<const std::span<uint8_t>> parts) {
    size_t done = 0;
    for (const std::span<uint8_t> part : parts) {
        const size_t size = part.empty() ? 0 : read(offset + done, part);
        done += size;
        if (size < part.size()) break;
    }
    return done;
}

}  // namespace shf
