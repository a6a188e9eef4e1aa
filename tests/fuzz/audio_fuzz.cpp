// Fuzz target of the audio decoder: any file, small limits; whatever is measured is decoded, and
// twice gives the same bytes.
//
// The first byte chooses the options, so that a corpus file says how it is read: bits 0 and 1 how
// to crop, bit 2 int16, bit 3 channels first, bit 4 mono, bit 5 another rate, bit 6 pad, bit 7 a
// longer crop.
#include "decode/audio_decoder.h"
#include "decoded_twice.h"

#include <cstdint>

namespace {

using shf::AudioOptions;

AudioOptions options_of(uint8_t choice) {
    AudioOptions options;
    options.crop = static_cast<AudioOptions::Crop>(choice & 3);
    options.length = {(choice & 128) != 0 ? uint64_t{1000} : uint64_t{10}, 0};
    if ((choice & 4) != 0) options.numbers = AudioOptions::Numbers::int16;
    options.channels_first = (choice & 8) != 0;
    options.mono = (choice & 16) != 0;
    if ((choice & 32) != 0) options.rate = 12000;
    options.pad = (choice & 64) != 0 && options.crop != AudioOptions::Crop::none;
    return options;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size < 1) return 0;
    constexpr uint64_t max_decoded = 1 << 18;
    const auto decoder = shf::audio_decoder(options_of(data[0]), max_decoded);
    decode_twice(*decoder, {data + 1, size - 1}, size, max_decoded);
    return 0;
}
