// Fuzz target of the audio decoder: any file, small limits; whatever is measured is decoded, and
// twice gives the same bytes.
//
// The first byte chooses the options, so that a corpus file says how it is read: bits 0 and 1 how
// to crop, bit 2 int16, bit 3 channels first, bit 4 mono, bit 5 another rate, bit 6 pad, bit 7 a
// longer crop. Pages of Ogg get right checksums, behind which nothing would be found else.
#include "decode/audio_decoder.h"
#include "decoded_twice.h"

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace {

using shf::AudioOptions;

AudioOptions options_of(uint8_t choice) {
    AudioOptions options;
    options.crop = static_cast<AudioOptions::Crop>(choice & 3);
    // The bits of no crop with padding, which there is not, mean that of a clip.
    if ((choice & 67) == 64) options.crop = AudioOptions::Crop::clip;
    options.length = {(choice & 128) != 0 ? uint64_t{1000} : uint64_t{10}, 0};
    if ((choice & 4) != 0) options.numbers = AudioOptions::Numbers::int16;
    options.channels_first = (choice & 8) != 0;
    options.mono = (choice & 16) != 0;
    if ((choice & 32) != 0) options.rate = 12000;
    options.pad = (choice & 64) != 0 && options.crop != AudioOptions::Crop::none;
    return options;
}

// The CRC of pages of Ogg (RFC 3533).
uint32_t crc_of_page(std::span<const uint8_t> page) {
    uint32_t crc = 0;
    for (const uint8_t byte : page) {
        crc ^= uint32_t{byte} << 24;
        for (int bit = 0; bit < 8; ++bit)
            crc = (crc & 0x80000000) != 0 ? crc << 1 ^ 0x04c11db7 : crc << 1;
    }
    return crc;
}

void correct_pages(std::span<uint8_t> file) {
    constexpr size_t fixed = 27, crc_at = 22;
    while (file.size() >= fixed && std::memcmp(file.data(), "OggS", 4) == 0) {
        size_t size = fixed + file[fixed - 1];
        if (size > file.size()) return;
        for (size_t i = fixed; i < fixed + file[fixed - 1]; ++i) size += file[i];
        if (size > file.size()) return;
        std::memset(&file[crc_at], 0, 4);
        const uint32_t crc = crc_of_page(file.first(size));
        for (size_t i = 0; i < 4; ++i) file[crc_at + i] = static_cast<uint8_t>(crc >> (8 * i));
        file = file.subspan(size);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size < 1) return 0;
    constexpr uint64_t max_decoded = 1 << 18;
    const auto decoder = shf::audio_decoder(options_of(data[0]), {}, {}, max_decoded);
    std::vector<uint8_t> file(data + 1, data + size);
    correct_pages(file);
    decode_twice(*decoder, file, size, max_decoded);
    return 0;
}
