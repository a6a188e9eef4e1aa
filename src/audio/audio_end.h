// What the first bytes of a sound say it is that libsndfile reads, and what its headers promise of
// its end.
#pragma once

#include <cstdint>
#include <span>

namespace shf {

enum class AudioFormat : uint8_t { wav, flac, mp3, opus };

// Throws Error: FORMAT when `file` ends before it should. A WAV (RIFF, RF64: EBU Tech 3306) has the
// size of its samples, unless the program that wrote it did not know it. A FLAC file says how many
// frames it has, which a reader finds missing. So does an MP3 file with the header of its encoder
// (Xing, Info, VBRI). UNSUPPORTED for an MP3 file without one, whose end nothing proves and whose
// length is a guess; and for all other formats. Opus in Ogg: as check_ogg_opus().
AudioFormat check_audio_end(std::span<const uint8_t> file);

// Throws Error(UNSUPPORTED) with the formats that are read.
[[noreturn]] void unsupported_sound(const char* what);

}  // namespace shf
