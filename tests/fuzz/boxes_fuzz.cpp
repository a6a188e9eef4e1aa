// Fuzz target of boxes in JSON. The first byte says how many names the path has, and the format;
// what is measured is decoded, and twice gives the same bytes.
#include "core/error.h"
#include "decode/box_decoder.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

// A PNG of 60 x 40 pixels in grey.
constexpr uint8_t image[] = {0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d,
                             0x49, 0x48, 0x44, 0x52, 0x00, 0x00, 0x00, 0x3c, 0x00, 0x00, 0x00, 0x28,
                             0x08, 0x00, 0x00, 0x00, 0x00, 0x87, 0xd0, 0xc6, 0x23, 0x00, 0x00, 0x00,
                             0x19, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0xed, 0xc1, 0x31, 0x01, 0x00,
                             0x00, 0x00, 0xc2, 0xa0, 0xf5, 0x4f, 0x6d, 0x0c, 0x1f, 0xa0, 0x00, 0x00,
                             0x78, 0x18, 0x09, 0x88, 0x00, 0x01, 0x88, 0xb8, 0x4e, 0xcf, 0x00, 0x00,
                             0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    constexpr uint64_t max_decoded = 1 << 20;
    static shf::DecodeScratch scratch;
    shf::BoxOptions boxes;
    for (int name = 0; name < data[0] % 3; ++name) boxes.path.emplace_back(1, "ab"[name]);
    boxes.format = static_cast<shf::BoxOptions::Format>(data[0] / 3 % 3);
    boxes.relative = data[0] / 9 % 2 != 0;
    shf::ImageOptions steps{.crop = shf::ImageOptions::Crop::random,
                            .crop_width = 30,
                            .crop_height = 20,
                            .flip = shf::ImageOptions::Flip::always};
    const auto decoder = shf::box_decoder(boxes, steps, max_decoded);
    const std::vector<uint8_t> json(data + 1, data + size);
    try {
        const shf::ArrayType type = decoder->measure_beside(image, json, 7).type;
        if (type.bytes() > max_decoded) std::abort();
        std::vector<uint8_t> first(type.bytes(), 0x55), second(type.bytes(), 0xaa);
        decoder->decode_beside(image, json, 7, type, first, scratch);
        decoder->decode_beside(image, json, 7, type, second, scratch);
        if (first != second) std::abort();
        for (size_t i = 0; i < first.size(); i += 4 * sizeof(float)) {
            float sides[4];
            std::memcpy(sides, first.data() + i, sizeof sides);
            if (!(sides[0] >= 0 && sides[1] >= 0 && sides[2] <= 30 && sides[3] <= 20 &&
                  sides[2] - sides[0] >= 1 && sides[3] - sides[1] >= 1))
                std::abort();
        }
    } catch (const shf::Error& error) {
        if (error.code() != SHF_E_FORMAT && error.code() != SHF_E_LIMIT) std::abort();
    }
    return 0;
}
