#include "io/read_ahead.h"

#include "core/error.h"

#include <algorithm>
#include <cstring>

namespace shf {

size_t ReadAhead::read_scattered(uint64_t offset, std::span<const std::span<uint8_t>> parts) {
    size_t wanted = 0;
    for (const std::span<uint8_t> part : parts) wanted += part.size();
    const auto covered = [&] {
        return offset >= start_ && offset - start_ <= have_ && wanted <= have_ - (offset - start_);
    };
    if (!covered()) {
        const bool follows = offset >= last_start_ && offset <= last_end_ + cost_.gap;
        in_turn_ = follows ? in_turn_ + 1 : 0;
        step_ = in_turn_ < enough ? 0 : std::min(std::max(2 * step_, cost_.gap), cost_.at_once);
        // Larger reads go straight to where they are wanted.
        if (step_ > 0 && wanted <= cost_.at_once / 4)
            read_on(offset, static_cast<size_t>(std::max<uint64_t>(step_, wanted)));
    }
    // A read that is not small, or that goes over the end of the file, is made as it is asked for.
    last_start_ = offset;
    last_end_ = offset + wanted;
    if (!covered()) return source_.read_scattered(offset, parts);
    const uint8_t* from = memory_.get() + (offset - start_);
    for (const std::span<uint8_t> part : parts) {
        if (!part.empty()) std::memcpy(part.data(), from, part.size());
        from += part.size();
    }
    return wanted;
}

// Makes the bytes from `offset` on those that are in memory.
void ReadAhead::read_on(uint64_t offset, size_t size) {
    if (!memory_) memory_ = std::make_unique_for_overwrite<uint8_t[]>(cost_.at_once);
    have_ = 0;
    start_ = offset;
    const std::span<uint8_t> whole(memory_.get(), size);
    try {
        have_ = source_.read_scattered(offset, {&whole, 1});
    } catch (const Error&) {  // it may lie where nobody reads: who does gets it
        in_turn_ = 0;
    }
}

}  // namespace shf
