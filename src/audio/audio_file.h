// One sound in memory, decoded by libsndfile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace shf {

// A frame is one number for each channel.
struct AudioHeader {
    uint64_t frames = 0;  // at least 1
    uint32_t channels = 0;
    uint32_t rate = 0;             // frames a second
    bool fits_in_16_bits = false;  // it is stored as whole numbers of at most 16 bits
};

// One thread at a time.
class AudioFile {
  public:
    // Borrows `file`. Throws Error: FORMAT (damaged, or without the end that its headers promise),
    // UNSUPPORTED (another format, or no libsndfile).
    explicit AudioFile(std::span<const uint8_t> file);
    ~AudioFile();
    AudioFile(const AudioFile&) = delete;
    AudioFile& operator=(const AudioFile&) = delete;

    [[nodiscard]] const AudioHeader& header() const { return header_; }

    // The next read() begins at this frame. Throws Error(FORMAT).
    void seek(uint64_t frame);
    // The next frames, channel after channel within each; the size is a multiple of the channels.
    // Throws Error(FORMAT) when the file has fewer, or damage that its decoder sees.
    void read(std::span<float> numbers);
    // Of a file that fits in 16 bits: its numbers, unchanged.
    void read(std::span<int16_t> numbers);

  private:
    struct Decoder;  // of libsndfile
    std::unique_ptr<Decoder> decoder_;
    AudioHeader header_;
};

// "libsndfile-1.2.0"; NULL where the build or the system has none.
const char* audio_library();

}  // namespace shf
