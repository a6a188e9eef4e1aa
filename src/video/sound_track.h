// The sound of a file in MP4, Matroska, WebM or AVI, with pictures or without, and Vorbis in Ogg,
// decoded by FFmpeg.
#pragma once

#include "audio/sound.h"
#include "video/video_format.h"

#include <cstdint>
#include <memory>
#include <span>

namespace shf {

// The first stream of sound: all frames that come out of its decoder, without the delay of the
// encoder, and without what an edit list or the pages of Ogg cut off.
class SoundTrack final : public Sound {
  public:
    // Borrows `file`, whose first bytes are of this format. Throws Error: FORMAT (damaged, without
    // the end that its headers promise, or without sound), LIMIT (counted by decoding: it has more
    // than `most_numbers`, of all channels), UNSUPPORTED (another format, a codec that this FFmpeg
    // has not, or no FFmpeg).
    SoundTrack(std::span<const uint8_t> file, VideoFormat format, uint64_t most_numbers);
    ~SoundTrack() override;

    // Decodes what it skips: of most codecs what comes out depends on all that was before.
    void seek(uint64_t frame) override;
    void read(std::span<float> numbers) override;
    void read(std::span<int16_t> numbers) override;

  private:
    struct Decoder;  // of FFmpeg
    template <typename Number>
    void read_all(std::span<Number> numbers);

    std::unique_ptr<Decoder> decoder_;
};

}  // namespace shf
