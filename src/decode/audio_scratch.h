// What one decoding thread keeps between sounds.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace shf {

// Memory for numbers that are not yet the result; used again, and not cleared.
class AudioBuffer {
  public:
    std::span<float> hold(size_t count) {
        if (count > size_) {
            clear();
            memory_ = std::make_unique_for_overwrite<float[]>(count);
            size_ = count;
        }
        return {memory_.get(), count};
    }
    [[nodiscard]] size_t size() const { return size_; }
    void clear() noexcept {
        memory_.reset();
        size_ = 0;
    }

  private:
    std::unique_ptr<float[]> memory_;
    size_t size_ = 0;
};

struct AudioScratch {
    AudioBuffer stored, resampled;

    // The memory of one long sound must not stay.
    struct Trim {
        AudioScratch& scratch;
        ~Trim() {
            constexpr size_t most_kept = size_t{16} << 20;  // numbers: 64 MiB
            for (AudioBuffer* buffer : {&scratch.stored, &scratch.resampled})
                if (buffer->size() > most_kept) buffer->clear();
        }
    };
};

}  // namespace shf
