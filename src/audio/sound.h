// A sound in memory that is decoded from front to back.
#pragma once

#include <cstdint>
#include <span>

namespace shf {

// A frame is one number for each channel.
struct AudioHeader {
    uint64_t frames = 0;  // at least 1
    uint32_t channels = 0;
    uint32_t rate = 0;             // frames a second
    bool fits_in_16_bits = false;  // it is stored as whole numbers of at most 16 bits
    // When its first frame is heard, in seconds on the clock of a file that has pictures too.
    double begins_at = 0;
};

// One thread at a time.
class Sound {
  public:
    virtual ~Sound() = default;
    Sound(const Sound&) = delete;
    Sound& operator=(const Sound&) = delete;

    [[nodiscard]] const AudioHeader& header() const { return header_; }

    // The next read() begins at this frame, which is not before the place reached. Throws
    // Error(FORMAT).
    virtual void seek(uint64_t frame) = 0;
    // The next frames, channel after channel within each; the size is a multiple of the channels.
    // Throws Error(FORMAT) when the sound has fewer, or damage that its decoder sees.
    virtual void read(std::span<float> numbers) = 0;
    // The same as int16, for a sound that fits in 16 bits. Numbers of 8 bits are multiplied by 256.
    virtual void read(std::span<int16_t> numbers) = 0;

  protected:
    Sound() = default;
    AudioHeader header_;
};

}  // namespace shf
