// What the headers of a sound promise of its end.
#pragma once

#include <cstdint>
#include <span>

namespace shf {

// Throws Error(FORMAT) when `file` ends before it should: the size of the samples of a WAV (RIFF,
// RF64; EBU Tech 3306), the mark of the last page of an Ogg file (RFC 3533 section 6). A FLAC file
// says how many frames it has, which a reader finds missing; MP3 promises nothing. Formats that are
// not known are left to the decoder.
void check_audio_end(std::span<const uint8_t> file);

}  // namespace shf
