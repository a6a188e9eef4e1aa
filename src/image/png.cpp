#include "image/png.h"

#include "core/checksum.h"
#include "core/error.h"
#include "image/exif.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <bit>
#include <csetjmp>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

namespace shf {

namespace {

constexpr size_t png_signature_size = 8, chunk_overhead = 12;  // length, type, CRC

uint32_t be32(std::span<const uint8_t> bytes, size_t at) {
    return static_cast<uint32_t>(bytes[at]) << 24 | static_cast<uint32_t>(bytes[at + 1]) << 16 |
           static_cast<uint32_t>(bytes[at + 2]) << 8 | bytes[at + 3];
}

[[noreturn]] void bad_png(const std::string& cause) {
    bad_image("PNG", cause);
}

// The chunk eXIf, which may stand before or after the pixels (PNG third edition, 11.3.4.5).
uint32_t png_orientation(std::span<const uint8_t> file) {
    size_t at = png_signature_size;
    while (file.size() - at >= chunk_overhead) {
        const size_t length = be32(file, at);
        if (length > file.size() - at - chunk_overhead) break;
        if (std::memcmp(&file[at + 4], "eXIf", 4) == 0)
            return exif_orientation(file.subspan(at + 8, length));
        at += chunk_overhead + length;
    }
    return 1;
}

// One reading of a file. libpng leaves its functions by longjmp when something is wrong: that ends
// in read(), and between there and libpng nothing has a destructor.
class PngReader {
  public:
    PngReader(std::span<const uint8_t> file, const ImageHeader& header, const Pixels& to)
        : file_(file), header_(header), to_(to) {
        png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail, ignore);
        if (png_ == nullptr) throw std::bad_alloc();
        info_ = png_create_info_struct(png_);
        if (info_ == nullptr) {
            png_destroy_read_struct(&png_, nullptr, nullptr);
            throw std::bad_alloc();
        }
    }
    ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
    PngReader(const PngReader&) = delete;
    PngReader& operator=(const PngReader&) = delete;

    // False: words() say why.
    [[nodiscard]] bool read() noexcept {
        if (setjmp(png_jmpbuf(png_)) != 0) return false;
        prepare();
        read_rows();
        return true;
    }
    [[nodiscard]] std::string_view words() const { return words_.data(); }

  private:
    void prepare() noexcept;
    void read_rows() noexcept;

    static void take(png_structp png, png_bytep out, size_t count) {
        auto& file = static_cast<PngReader*>(png_get_io_ptr(png))->file_;
        if (count > file.size()) png_error(png, "the file ends too early");
        std::copy_n(file.data(), count, out);
        file = file.subspan(count);
    }
    [[noreturn]] static void fail(png_structp png, png_const_charp words) {
        auto& own = static_cast<PngReader*>(png_get_error_ptr(png))->words_;
        std::strncpy(own.data(), words, own.size() - 1);
        png_longjmp(png, 1);
    }
    static void ignore(png_structp /*png*/, png_const_charp /*words*/) {}

    std::span<const uint8_t> file_;  // what is left of it
    const ImageHeader& header_;
    const Pixels& to_;
    png_structp png_ = nullptr;
    png_infop info_ = nullptr;
    std::array<char, 128> words_{};
};

void PngReader::prepare() noexcept {
    png_set_read_fn(png_, this, take);
    png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    // What libpng would only warn of: a wrong checksum of the compressed pixels, a damaged tRNS.
    png_set_benign_errors(png_, 0);
    // Texts and profiles are neither used nor unpacked; their CRC is checked.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_user_limits(png_, header_.width, header_.height);

    png_read_info(png_, info_);
    const int type = png_get_color_type(png_, info_);
    const int bits = png_get_bit_depth(png_, info_);
    if (header_.indexes)
        png_set_packing(png_);  // each in a byte
    else
        png_set_expand(png_);
    if (bits == 16 && to_.depth == 8) png_set_scale_16(png_);
    if (to_.depth == 16 && std::endian::native == std::endian::little) png_set_swap(png_);
    if (to_.channels > 1 && (type == PNG_COLOR_TYPE_GRAY || type == PNG_COLOR_TYPE_GRAY_ALPHA))
        png_set_gray_to_rgb(png_);
    if (to_.channels == 4)
        png_set_add_alpha(png_, to_.depth == 16 ? 0xffff : 0xff, PNG_FILLER_AFTER);
    else if (!header_.indexes)
        png_set_strip_alpha(png_);
}

void PngReader::read_rows() noexcept {
    const int passes = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    if (png_get_image_width(png_, info_) != to_.width ||
        png_get_image_height(png_, info_) != to_.height ||
        png_get_rowbytes(png_, info_) != to_.stride())
        png_error(png_, "the header is ambiguous");
    for (int pass = 0; pass < passes; ++pass)
        for (uint32_t y = 0; y < to_.height; ++y) png_read_row(png_, to_.row(y), nullptr);
    png_read_end(png_, nullptr);
}

}  // namespace

ImageHeader read_png_header(std::span<const uint8_t> file, bool orient) {
    // IHDR comes first and has 13 bytes (PNG third edition, 5.6 and 11.2.1).
    constexpr size_t type = png_signature_size + 4, data = type + 4, crc = data + 13;
    if (file.size() < crc + 4) bad_png("the file ends inside its header");
    if (be32(file, png_signature_size) != 13 || std::memcmp(&file[type], "IHDR", 4) != 0)
        bad_png("the first chunk is not IHDR");
    if (crc32(file.subspan(type, crc - type)) != be32(file, crc))
        bad_png("the checksum of IHDR is wrong");
    ImageHeader header{.format = ImageFormat::png};
    header.width = be32(file, data);
    header.height = be32(file, data + 4);
    if (header.width == 0 || header.height == 0) bad_png("an image of 0 pixels");
    if (header.width > PNG_UINT_31_MAX || header.height > PNG_UINT_31_MAX)
        bad_png("a side of more than 2^31 - 1 pixels");
    header.depth = file[data + 8] == 16 ? 16 : 8;
    switch (file[data + 9]) {
        case PNG_COLOR_TYPE_GRAY: header.channels = 1; break;
        case PNG_COLOR_TYPE_GRAY_ALPHA: header.channels = 2; break;
        case PNG_COLOR_TYPE_PALETTE: header.has_palette = true; [[fallthrough]];
        case PNG_COLOR_TYPE_RGB: header.channels = 3; break;
        case PNG_COLOR_TYPE_RGB_ALPHA: header.channels = 4; break;
        default: bad_png("colour type " + std::to_string(file[data + 9]));
    }
    if (orient) header.orientation = png_orientation(file);
    return header;
}

void decode_png(std::span<const uint8_t> file, const ImageHeader& header, const Pixels& to) {
    PngReader reader(file, header, to);
    if (reader.read()) return;
    const std::string_view words = reader.words();
    if (words.starts_with("Out of memory") || words.find("nsufficient memory") != words.npos)
        throw std::bad_alloc();
    bad_png(std::string(words));
}

}  // namespace shf
