// Fuzz target of the video decoder: any file, small limits; whatever is measured is decoded, and
// twice gives the same bytes.
//
// The first byte chooses the options, so that a corpus file says how it is read: bits 0 to 2 which
// frames, bit 3 a rate, bit 4 repeat, bit 5 channels first, bit 6 a resize, bit 7 grey.
#include "decode/video_decoder.h"
#include "decoded_twice.h"

#include <cstdint>

namespace {

using shf::ImageOptions;
using shf::VideoOptions;

VideoOptions frames_of(uint8_t choice) {
    VideoOptions options;
    options.pick = static_cast<VideoOptions::Pick>((choice & 7) % 5);
    options.count = 3;
    if (options.pick >= VideoOptions::Pick::start) options.stride = 2;
    if ((choice & 8) != 0) options.rate_milli = 7500;
    options.repeat = (choice & 16) != 0;
    return options;
}

ImageOptions images_of(uint8_t choice) {
    ImageOptions options;
    options.channels_first = (choice & 32) != 0;
    if ((choice & 64) != 0) {
        options.resize = ImageOptions::Resize::shorter;
        options.width = 9;
    }
    if ((choice & 128) != 0) options.mode = ImageOptions::Mode::l8;
    return options;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size < 1) return 0;
    constexpr uint64_t max_decoded = 1 << 18;
    const auto decoder = shf::video_decoder(frames_of(data[0]), images_of(data[0]), max_decoded);
    decode_twice(*decoder, {data + 1, size - 1}, size, max_decoded);
    return 0;
}
