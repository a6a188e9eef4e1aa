// Times in seconds and nanoseconds.
#pragma once

#include <cstdint>
#include <ctime>

namespace shf {

inline constexpr int64_t second = 1'000'000'000;  // nanoseconds

// Since 1970, by a clock that may be set.
inline int64_t seconds_now() {
    return static_cast<int64_t>(std::time(nullptr));
}

// Since 1970, or of a duration.
constexpr int64_t nanoseconds(const timespec& time) {
    return int64_t{time.tv_sec} * second + time.tv_nsec;
}

}  // namespace shf
