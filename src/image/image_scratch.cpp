#include "image/image_scratch.h"

#include <limits>
#include <new>

namespace shf {

void PixelBuffer::hold(Pixels& pixels) {
    constexpr size_t readable_after = 16;
    size_t size = 0;
    if (__builtin_mul_overflow(pixels.stride(), size_t{pixels.height}, &size) ||
        size > std::numeric_limits<size_t>::max() / 2)
        throw std::bad_alloc();
    size += readable_after;
    if (size > size_) {
        clear();
        memory_ = std::make_unique_for_overwrite<uint8_t[]>(size);
        size_ = size;
    }
    pixels.data = memory_.get();
}

void PixelBuffer::clear() noexcept {
    memory_.reset();
    size_ = 0;
}

void ImageScratch::drop_large_pieces() noexcept {
    for (PixelBuffer* buffer : {&stored, &turned, &resampled})
        if (buffer->size() > most_kept) buffer->clear();
    const auto bytes = [](const auto& items) { return items.capacity() * sizeof items[0]; };
    const auto table_bytes = [&](const FilterTable& table) {
        return bytes(table.taps) + bytes(table.weights) + bytes(table.pairs) + bytes(table.precise);
    };
    if (bytes(resample.lines) + table_bytes(resample.columns) + table_bytes(resample.rows) >
        most_kept)
        resample = {};
}

}  // namespace shf
