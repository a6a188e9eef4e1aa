// For libraries that do not say when they get no memory.
#pragma once

#include "core/error.h"

#include <cstddef>
#include <new>

namespace shf {

// Throws std::bad_alloc where there are not so many bytes: for a library that crashes then.
inline void check_memory(size_t bytes) {
    ::operator delete(::operator new(bytes));
}

// Runs `work`, which decodes a file with a library and has no other effect. Where memory runs out,
// such a library says that the file is damaged (libsndfile, libwebp, giflib), or crashes
// (libsndfile, libsoxr, libtiff, libjxl, libavif). So `bytes`, about what it needs, must be there
// before it begins, and what is damaged, or too large for it, is decoded once more. Where another
// thread takes the last memory meanwhile, the second group still crashes. Throws std::bad_alloc.
template <typename Work>
void with_memory_to_decode(size_t bytes, const Work& work) {
    for (const bool again : {false, true}) {
        check_memory(bytes);
        try {
            return work();
        } catch (const Error& error) {
            const int32_t code = error.code();
            if (again || (code != SHF_E_FORMAT && code != SHF_E_LIMIT)) throw;
        }
    }
}

}  // namespace shf
