#include "image/jpeg.h"

#include "core/error.h"
#include "image/exif.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <jerror.h>
#include <jpeglib.h>

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
    if (header.channels != 1 && header.channels != 3 && header.channels != 4)
        throw Error(SHF_E_UNSUPPORTED,
                    "JPEG with " + std::to_string(header.channels) + " components",
                    "re-encode the image as RGB or grey");
}

// libjpeg decodes line by line when one scan has everything. Else it keeps the coefficients of the
// whole image: 64 of 2 bytes for each block of each component, in blocks up to whole MCUs (T.81
// section A.2.4).
uint64_t coefficient_bytes(std::span<const uint8_t> frame, const ImageHeader& header) {
    const size_t components = frame[5];
    if (frame.size() < 6 + 3 * components) bad_jpeg("the frame header is too short");
    struct Sampling {
        uint32_t h, v;
    };
    const auto sampling = [frame](size_t component) {
        const uint8_t byte = frame[6 + 3 * component + 1];
        return Sampling{static_cast<uint32_t>(byte >> 4), static_cast<uint32_t>(byte & 15)};
    };
    Sampling most{1, 1};
    for (size_t i = 0; i < components; ++i) {
        const Sampling s = sampling(i);
        if (s.h < 1 || s.h > 4 || s.v < 1 || s.v > 4) bad_jpeg("bad sampling factors");
        most = {std::max(most.h, s.h), std::max(most.v, s.v)};
    }
    const auto blocks = [](uint64_t side, uint64_t factor, uint64_t largest) {
        const uint64_t needed = (side * factor + 8 * largest - 1) / (8 * largest);
        return (needed + factor - 1) / factor * factor;
    };
    uint64_t sum = 0;
    for (size_t i = 0; i < components; ++i) {
        const Sampling s = sampling(i);
        sum += blocks(header.width, s.h, most.h) * blocks(header.height, s.v, most.v) * 64 * 2;
    }
    return sum;
}

bool has_exif(std::span<const uint8_t> segment) {
    const std::string_view text(reinterpret_cast<const char*>(segment.data()), segment.size());
    return text.starts_with(std::string_view("Exif\0\0", 6));
}

// One decompression. The functions of libjpeg leave by longjmp(): what is called in guarded() has
// nothing that would have to be destroyed.
class Decompression {
  public:
    explicit Decompression(std::span<const uint8_t> file) {
        info_.err = jpeg_std_error(&failure_.manager);
        failure_.manager.error_exit = stop;
        failure_.manager.emit_message = [](j_common_ptr info, int level) {
            if (level < 0) stop(info);  // a warning
        };
        guarded([&] {
            jpeg_create_decompress(&info_);
            jpeg_mem_src(&info_, file.data(), file.size());
            jpeg_read_header(&info_, TRUE);
        });
        // Without a limit of scans, a small progressive file can take minutes.
        progress_.progress_monitor = [](j_common_ptr info) {
            constexpr int most_scans = 500;  // as TurboJPEG has it
            if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > most_scans) {
                Failure& failure = *reinterpret_cast<Failure*>(info->err);
                std::snprintf(failure.words, sizeof failure.words, "more than %d scans",
                              most_scans);
                std::longjmp(failure.place, 1);
            }
        };
        info_.progress = &progress_;
    }
    Decompression(const Decompression&) = delete;
    Decompression& operator=(const Decompression&) = delete;

    // What libjpeg takes for the size must be what measure() did: it would fill a part of the
    // result if the image were smaller.
    void check_size(const ImageHeader& header) const {
        if (info_.image_width != header.width || info_.image_height != header.height)
            bad_jpeg("the header is ambiguous");
    }

    void start(uint32_t reduction, uint32_t channels) {
        info_.scale_num = 1;
        info_.scale_denom = reduction;
        info_.out_color_space = has_inks()      ? JCS_CMYK
                                : channels == 1 ? JCS_GRAYSCALE
                                : channels == 3 ? JCS_RGB
                                                : JCS_EXT_RGBA;
        guarded([&] { jpeg_start_decompress(&info_); });
    }

    // Reads only columns from `left`, or up to a block before it, so many or some more. Returns
    // where they begin.
    uint32_t keep_columns(uint32_t left, uint32_t width) {
        JDIMENSION from = left, count = width;
        if (width < info_.output_width) guarded([&] { jpeg_crop_scanline(&info_, &from, &count); });
        return from;
    }
    [[nodiscard]] uint32_t width() const { return info_.output_width; }

    void skip_rows(uint32_t count) {
        if (count > 0) guarded([&] { jpeg_skip_scanlines(&info_, count); });
    }

    // Fills all rows of `to`.
    void read_rows(const Pixels& to) {
        std::vector<uint8_t> inks(has_inks() ? size_t{to.width} * 4 : 0);
        guarded([&] {
            const JDIMENSION first = info_.output_scanline;
            while (info_.output_scanline - first < to.height) {
                const JDIMENSION y = info_.output_scanline - first;
                constexpr JDIMENSION at_once = 16;
                JSAMPROW rows[at_once];
                const JDIMENSION count = has_inks() ? 1 : std::min(at_once, to.height - y);
                for (JDIMENSION i = 0; i < count; ++i) rows[i] = to.row(y + i);
                if (has_inks()) rows[0] = inks.data();
                jpeg_read_scanlines(&info_, rows, count);
                if (has_inks()) inks_to_colours(inks.data(), to, to.row(y));
            }
        });
    }

    // What follows the last row must be there and the end.
    void finish() {
        guarded([&] { jpeg_finish_decompress(&info_); });
    }

  private:
    struct Failure {
        jpeg_error_mgr manager;  // the first one: libjpeg gives back its address
        std::jmp_buf place;
        char words[JMSG_LENGTH_MAX];
        bool no_memory;
    };

    [[noreturn]] static void stop(j_common_ptr info) {
        Failure& failure = *reinterpret_cast<Failure*>(info->err);
        failure.manager.format_message(info, failure.words);
        failure.no_memory = failure.manager.msg_code == JERR_OUT_OF_MEMORY;
        std::longjmp(failure.place, 1);
    }

    template <typename Call>
    [[gnu::noinline]] void guarded(const Call& call) {
        if (setjmp(failure_.place) == 0) return call();
        if (failure_.no_memory) throw std::bad_alloc();
        bad_jpeg(failure_.words);
    }

    [[nodiscard]] bool has_inks() const { return info_.num_components == 4; }

    // cmyk2rgb() of Pillow, which takes all inks for inverted, as Adobe stores them.
    static void inks_to_colours(const uint8_t* in, const Pixels& to, uint8_t* out) {
        for (uint32_t x = 0; x < to.width; ++x, in += 4, out += to.channels) {
            const uint32_t light = in[3];
            for (size_t c = 0; c < 3; ++c) {
                const uint32_t product = (255U - in[c]) * light + 128;
                const uint32_t ink = ((product >> 8) + product) >> 8;
                out[c] = static_cast<uint8_t>(light - std::min(light, ink));
            }
            if (to.channels == 4) out[3] = 255;
        }
    }

    // Destroyed when the constructor throws, too.
    struct Info : jpeg_decompress_struct {
        ~Info() { jpeg_destroy_decompress(this); }
    };
    Info info_{};
    jpeg_progress_mgr progress_{};
    Failure failure_{};
};

// Whether the end of the image is there; in the data of a scan no such marker can be.
bool has_end(std::span<const uint8_t> scans) {
    for (size_t left = scans.size(); left > 1;) {
        const void* const found = memrchr(scans.data(), eoi, left);
        if (found == nullptr) return false;
        left = static_cast<size_t>(static_cast<const uint8_t*>(found) - scans.data());
        if (left > 0 && scans[left - 1] == 0xff) return true;
    }
    return false;
}

}  // namespace

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
        header.channels = std::min(header.channels, 3U);  // inks become colours
        header.scans = at;
        return header;
    }
}

uint32_t jpeg_reduction(uint64_t from_width, uint64_t from_height, uint64_t width,
                        uint64_t height) {
    for (const uint32_t factor : {8U, 4U, 2U})
        if (from_width / factor >= width && from_height / factor >= height) return factor;
    return 1;
}

void decode_jpeg(std::span<const uint8_t> file, const ImageHeader& header, const Pixels& to) {
    Decompression decompression(file);
    decompression.check_size(header);
    decompression.start(1, to.channels);
    decompression.read_rows(to);
    decompression.finish();
}

CropBox decode_jpeg_part(std::span<const uint8_t> file, const ImageHeader& header,
                         uint32_t reduction, const CropBox& wanted, Pixels& to,
                         PixelBuffer& buffer) {
    Decompression decompression(file);
    decompression.check_size(header);
    decompression.start(reduction, to.channels);
    const uint32_t whole_width = decompression.width();
    const uint32_t whole_height = (header.height + reduction - 1) / reduction;
    // Colours that are stored at half the size are interpolated with their neighbours.
    constexpr uint32_t context = 2;
    const auto before = [](uint32_t at) { return at - std::min(at, uint32_t{context}); };
    const uint32_t from = before(wanted.left);
    CropBox part;
    part.left = decompression.keep_columns(
        from, std::min(wanted.left + wanted.width + context, whole_width) - from);
    part.top = before(wanted.top);
    part.width = decompression.width();
    part.height = wanted.top + wanted.height - part.top;
    const bool to_the_end = part.top + part.height == whole_height;
    if (!to_the_end && !has_end(file.subspan(header.scans))) bad_jpeg("Premature end of JPEG file");
    to.width = part.width;
    to.height = part.height;
    buffer.hold(to);
    decompression.skip_rows(part.top);
    decompression.read_rows(to);
    if (to_the_end) decompression.finish();
    return part;
}

}  // namespace shf
