// A file that is a sound, decoded by libsndfile.
#pragma once

#include "audio/sound.h"

#include <cstdint>
#include <memory>
#include <span>

namespace shf {

class AudioFile final : public Sound {
  public:
    // Borrows `file`. Throws Error: FORMAT (damaged, or without the end that its headers promise),
    // UNSUPPORTED (another format, or no libsndfile).
    explicit AudioFile(std::span<const uint8_t> file);
    ~AudioFile() override;

    void seek(uint64_t frame) override;
    void read(std::span<float> numbers) override;
    void read(std::span<int16_t> numbers) override;

  private:
    struct Decoder;  // of libsndfile
    std::unique_ptr<Decoder> decoder_;
};

// "libsndfile-1.2.0"; NULL where the build or the system has none.
const char* audio_library();

}  // namespace shf
