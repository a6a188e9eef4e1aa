#include "image/jpeg.h"

#include "core/error.h"
#include "image/exif.h"

#include <turbojpeg.h>

#include <algorithm>
#include <new>
#include <string>
#include <string_view>

namespace shf {

namespace {

// Markers of ITU-T T.81, table B.1.
constexpr uint8_t tem = 0x01, sof0 = 0xc0, sof1 = 0xc1, sof2 = 0xc2, dht = 0xc4, jpg = 0xc8,
                  sof9 = 0xc9, sof10 = 0xca, dac = 0xcc, sof15 = 0xcf, rst0 = 0xd0, rst7 = 0xd7,
                  soi = 0xd8, eoi = 0xd9, sos = 0xda, app1 = 0xe1;

bool is_frame(uint8_t marker) {
    return marker >= sof0 && marker <= sof15 && marker != dht && marker != jpg && marker != dac;
}

[[noreturn]] void bad_jpeg(const std::string& cause) {
    bad_image("JPEG", cause);
}

// The frame header, T.81 section B.2.2.
void read_frame(uint8_t marker, std::span<const uint8_t> segment, ImageHeader& header) {
    if (header.channels != 0) bad_jpeg("there are two frames");
    if (segment.size() < 6) bad_jpeg("the frame header is too short");
    // Sequential and progressive, with Huffman or arithmetic codes; neither lossless nor
    // hierarchical.
    const bool known =
        marker == sof0 || marker == sof1 || marker == sof2 || marker == sof9 || marker == sof10;
    if (!known || segment[0] != 8)
        throw Error(SHF_E_UNSUPPORTED,
                    known ? "JPEG with " + std::to_string(segment[0]) + " bits"
                          : "JPEG that is lossless or hierarchical",
                    "re-encode as baseline or progressive JPEG with 8 bits, or as PNG");
    header.height = static_cast<uint32_t>(segment[1] << 8 | segment[2]);
    header.width = static_cast<uint32_t>(segment[3] << 8 | segment[4]);
    if (header.width == 0 || header.height == 0) bad_jpeg("an image of 0 pixels");
    header.channels = segment[5];
    if (header.channels == 4)
        throw Error(SHF_E_UNSUPPORTED, "JPEG in CMYK, whose colours depend on the printer's inks",
                    "re-encode the image as RGB");
    if (header.channels != 1 && header.channels != 3)
        throw Error(SHF_E_UNSUPPORTED,
                    "JPEG with " + std::to_string(header.channels) + " components",
                    "re-encode the image as RGB or grey");
}

// libjpeg decodes line by line when one scan has everything. Else it keeps the coefficients of the
// whole image: 64 of 2 bytes for each block of each component, in blocks up to whole MCUs (T.81
// section A.2.4).
uint64_t coefficient_bytes(std::span<const uint8_t> frame, const ImageHeader& header) {
    if (frame.size() < 6 + 3 * size_t{header.channels}) bad_jpeg("the frame header is too short");
    struct Sampling {
        uint32_t h, v;
    };
    const auto sampling = [frame](size_t component) {
        const uint8_t byte = frame[6 + 3 * component + 1];
        return Sampling{static_cast<uint32_t>(byte >> 4), static_cast<uint32_t>(byte & 15)};
    };
    Sampling most{1, 1};
    for (size_t i = 0; i < header.channels; ++i) {
        const Sampling s = sampling(i);
        if (s.h < 1 || s.h > 4 || s.v < 1 || s.v > 4) bad_jpeg("bad sampling factors");
        most = {std::max(most.h, s.h), std::max(most.v, s.v)};
    }
    const auto blocks = [](uint64_t side, uint64_t factor, uint64_t largest) {
        const uint64_t needed = (side * factor + 8 * largest - 1) / (8 * largest);
        return (needed + factor - 1) / factor * factor;
    };
    uint64_t sum = 0;
    for (size_t i = 0; i < header.channels; ++i) {
        const Sampling s = sampling(i);
        sum += blocks(header.width, s.h, most.h) * blocks(header.height, s.v, most.v) * 64 * 2;
    }
    return sum;
}

bool has_exif(std::span<const uint8_t> segment) {
    const std::string_view text(reinterpret_cast<const char*>(segment.data()), segment.size());
    return text.starts_with(std::string_view("Exif\0\0", 6));
}

// A handle that saw an error is not used again: libjpeg-turbo 2.1.5 then says the words of an
// earlier error.
[[noreturn]] void fail(JpegHandle& handle) {
    const std::string words = tjGetErrorStr2(handle.get());
    handle.reset();
    // JERR_OUT_OF_MEMORY of libjpeg, and TurboJPEG's own.
    if (words.starts_with("Insufficient memory") ||
        words.find("Memory allocation failure") != words.npos)
        throw std::bad_alloc();
    bad_jpeg(words);
}

}  // namespace

void JpegClose::operator()(void* handle) const noexcept {
    tjDestroy(handle);
}

ImageHeader read_jpeg_header(std::span<const uint8_t> file, bool orient) {
    ImageHeader header{.format = ImageFormat::jpeg};
    bool oriented = !orient, progressive = false;
    std::span<const uint8_t> frame;
    size_t at = 2;  // after SOI
    for (;;) {
        if (at >= file.size()) bad_jpeg("the file ends inside its header");
        // libjpeg skips what is no marker, with a warning, and warnings are errors here.
        if (file[at] != 0xff) bad_jpeg("no marker where one must be");
        while (at < file.size() && file[at] == 0xff) ++at;  // any number of fill bytes
        if (at >= file.size()) bad_jpeg("the file ends inside its header");
        const uint8_t marker = file[at++];
        if (marker == tem || (marker >= rst0 && marker <= rst7)) continue;
        if (marker == 0 || marker == soi || marker == eoi)
            bad_jpeg("marker " + std::to_string(marker) + " before the image");
        if (file.size() - at < 2) bad_jpeg("the file ends inside its header");
        const size_t length = static_cast<size_t>(file[at] << 8 | file[at + 1]);
        if (length < 2) bad_jpeg("a segment of " + plural(length, "byte"));
        if (file.size() - at < length) bad_jpeg("the file ends inside its header");
        const auto segment = file.subspan(at + 2, length - 2);
        at += length;
        if (is_frame(marker)) {
            read_frame(marker, segment, header);
            frame = segment;
            progressive = marker == sof2 || marker == sof10;
        }
        if (marker == app1 && !oriented && has_exif(segment)) {
            header.orientation = exif_orientation(segment);
            oriented = true;
        }
        if (marker != sos) continue;
        if (header.channels == 0) bad_jpeg("a scan before the frame header");
        const uint32_t components = segment.empty() ? 0 : segment[0];
        if (progressive || components < header.channels)
            header.kept = coefficient_bytes(frame, header);
        return header;
    }
}

uint32_t jpeg_reduction(const ImageHeader& header, uint64_t width, uint64_t height) {
    for (const uint32_t factor : {8U, 4U, 2U})
        if (header.width / factor >= width && header.height / factor >= height) return factor;
    return 1;
}

void decode_jpeg(std::span<const uint8_t> file, const ImageHeader& header, uint32_t reduction,
                 const Pixels& to, JpegHandle& handle) {
    if (!handle) {
        handle.reset(tjInitDecompress());
        if (!handle) throw std::bad_alloc();
    }
    // What libjpeg-turbo takes for the size must be what measure() did: it would fill a part of
    // `to` if the image were smaller. Its result code says nothing here: subsampling without a
    // name (4:1:0) is an error of this call alone.
    int width = 0, height = 0, subsampling = 0, colours = 0;
    const int found = tjDecompressHeader3(handle.get(), file.data(), file.size(), &width, &height,
                                          &subsampling, &colours);
    if (width < 1 || static_cast<uint32_t>(width) != header.width || height < 1 ||
        static_cast<uint32_t>(height) != header.height) {
        if (found != 0) fail(handle);
        bad_jpeg("the header is ambiguous");
    }
    const int format = to.channels == 1 ? TJPF_GRAY : to.channels == 3 ? TJPF_RGB : TJPF_RGBA;
    // Without a limit of scans, a small progressive file can take minutes.
    constexpr int flags = TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS;
    const auto scaled = [reduction](int side) {
        return static_cast<int>((static_cast<uint32_t>(side) + reduction - 1) / reduction);
    };
    if (tjDecompress2(handle.get(), file.data(), file.size(), to.data, scaled(width),
                      static_cast<int>(to.stride()), scaled(height), format, flags) != 0)
        fail(handle);
}

}  // namespace shf
