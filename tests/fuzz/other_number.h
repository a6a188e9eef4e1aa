// Numbers that are near another one, or at borders: for mutators of fuzz targets.
#pragma once

#include <cstdint>
#include <random>

namespace shf::test {

inline uint64_t other_number(uint64_t number, std::minstd_rand& random) {
    switch (random() % 8) {
        case 0: return number + 1;
        case 1: return number - 1;
        case 2: return number * 2;
        case 3: return random() % 16;
        case 4: return random() % 700;
        case 5: return number + 512 * (random() % 64);
        case 6: return uint64_t{1} << random() % 64;
        default: return 0;
    }
}

}  // namespace shf::test
