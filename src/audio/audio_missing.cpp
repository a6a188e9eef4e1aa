// A build without libsndfile or libsoxr.
#include "audio/audio_file.h"
#include "audio/resample_audio.h"
#include "core/error.h"

namespace shf {

namespace {

[[noreturn]] void left_out() {
    throw Error(SHF_E_UNSUPPORTED, "sounds: this library was built without libsndfile and libsoxr",
                "install their -dev packages and build it again, or take the field as bytes");
}

}  // namespace

struct AudioFile::Decoder {};

AudioFile::AudioFile(std::span<const uint8_t> /*file*/) {
    left_out();
}
AudioFile::~AudioFile() = default;
void AudioFile::seek(uint64_t /*frame*/) {}
void AudioFile::read(std::span<float> /*numbers*/) {}
void AudioFile::read(std::span<int16_t> /*numbers*/) {}

void resample_audio(std::span<const float> /*in*/, uint32_t /*channels*/, uint32_t /*from*/,
                    uint32_t /*to*/, std::span<float> /*out*/) {
    left_out();
}

const char* audio_library() {
    return nullptr;
}

}  // namespace shf
