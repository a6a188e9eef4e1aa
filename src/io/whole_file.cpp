#include "io/whole_file.h"

#include "core/error.h"
#include "core/opening.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

namespace shf {

void WholeFile::Free::operator()(uint8_t* bytes) const {
    std::free(bytes);
}

void WholeFile::grow(size_t capacity) {
    auto* larger = static_cast<uint8_t*>(std::realloc(bytes_.get(), capacity));
    if (!larger) throw std::bad_alloc();
    (void)bytes_.release();
    bytes_.reset(larger);
    capacity_ = capacity;
}

void WholeFile::put(std::span<const uint8_t> bytes) {
    if (bytes.empty()) return;
    grow(bytes.size());
    std::memcpy(bytes_.get(), bytes.data(), bytes.size());
    size_ = bytes.size();
}

void WholeFile::take(Sequential& input, uint64_t most, const char* help) {
    const auto check_size = [&] {
        if (size_ > most)
            throw Error(SHF_E_LIMIT,
                        "the archive has more bytes than memory=" + std::to_string(most), help);
    };
    for (;;) {
        if (size_ == capacity_) {
            check_size();
            // One byte above the limit shows that there is more than that.
            const size_t doubled = capacity_ > SIZE_MAX / 2 ? SIZE_MAX : 2 * capacity_;
            const size_t enough = most < SIZE_MAX ? static_cast<size_t>(most) + 1 : SIZE_MAX;
            grow(std::max(std::min(std::max<size_t>(doubled, 1 << 20), enough), size_ + 1));
        }
        Opening::check();
        const size_t got = input.read({bytes_.get() + size_, capacity_ - size_});
        if (got == 0) break;
        size_ += got;
    }
    check_size();
}

}  // namespace shf
