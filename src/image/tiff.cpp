#include "image/tiff.h"

#include "core/dynamic_library.h"
#include "core/error.h"

#include <tiffio.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace shf {

namespace {

// Its functions, under their names without "TIFF".
struct Libtiff {
    decltype(&TIFFClientOpenExt) ClientOpenExt;
    decltype(&TIFFClose) Close;
    decltype(&TIFFGetField) GetField;
    decltype(&TIFFGetFieldDefaulted) GetFieldDefaulted;
    decltype(&TIFFGetVersion) GetVersion;
    decltype(&TIFFIsCODECConfigured) IsCODECConfigured;
    decltype(&TIFFIsTiled) IsTiled;
    decltype(&TIFFComputeStrip) ComputeStrip;
    decltype(&TIFFComputeTile) ComputeTile;
    decltype(&TIFFReadEncodedStrip) ReadEncodedStrip;
    decltype(&TIFFReadEncodedTile) ReadEncodedTile;
    decltype(&TIFFSetField) SetField;
    decltype(&TIFFScanlineSize64) ScanlineSize64;
    decltype(&TIFFTileRowSize64) TileRowSize64;
    decltype(&TIFFOpenOptionsAlloc) OpenOptionsAlloc;
    decltype(&TIFFOpenOptionsFree) OpenOptionsFree;
    decltype(&TIFFOpenOptionsSetErrorHandlerExtR) OpenOptionsSetErrorHandlerExtR;
    decltype(&TIFFOpenOptionsSetMaxSingleMemAlloc) OpenOptionsSetMaxSingleMemAlloc;
    decltype(&TIFFOpenOptionsSetWarningHandlerExtR) OpenOptionsSetWarningHandlerExtR;
};

const Libtiff& libtiff() {
    static const Libtiff functions = [] {
        const DynamicLibrary library("libtiff", "libtiff.so.6",
                                     "install libtiff6 (Debian, Ubuntu) or libtiff (Fedora)");
        Libtiff found{};
        library.find("TIFFClientOpenExt", found.ClientOpenExt);
        library.find("TIFFClose", found.Close);
        library.find("TIFFGetField", found.GetField);
        library.find("TIFFGetFieldDefaulted", found.GetFieldDefaulted);
        library.find("TIFFGetVersion", found.GetVersion);
        library.find("TIFFIsCODECConfigured", found.IsCODECConfigured);
        library.find("TIFFIsTiled", found.IsTiled);
        library.find("TIFFComputeStrip", found.ComputeStrip);
        library.find("TIFFComputeTile", found.ComputeTile);
        library.find("TIFFReadEncodedStrip", found.ReadEncodedStrip);
        library.find("TIFFReadEncodedTile", found.ReadEncodedTile);
        library.find("TIFFSetField", found.SetField);
        library.find("TIFFScanlineSize64", found.ScanlineSize64);
        library.find("TIFFTileRowSize64", found.TileRowSize64);
        library.find("TIFFOpenOptionsAlloc", found.OpenOptionsAlloc);
        library.find("TIFFOpenOptionsFree", found.OpenOptionsFree);
        library.find("TIFFOpenOptionsSetErrorHandlerExtR", found.OpenOptionsSetErrorHandlerExtR);
        library.find("TIFFOpenOptionsSetMaxSingleMemAlloc", found.OpenOptionsSetMaxSingleMemAlloc);
        library.find("TIFFOpenOptionsSetWarningHandlerExtR",
                     found.OpenOptionsSetWarningHandlerExtR);
        return found;
    }();
    return functions;
}

[[noreturn]] void bad_tiff(const std::string& cause) {
    bad_image("TIFF", cause);
}
[[noreturn]] void unsupported_tiff(const std::string& what) {
    throw Error(SHF_E_UNSUPPORTED, "TIFF: " + what,
                "convert the image to 8 or 16 bits without a sign, grey or RGB, in PNG or TIFF");
}

// What the tags say of the first image.
struct TiffLayout {
    uint32_t width = 0, height = 0;
    uint32_t piece_width = 0, piece_height = 0;  // of a strip or tile
    uint64_t piece_stride = 0;                   // bytes of a row of it
    uint16_t bits = 0, samples = 0, photometric = 0;
    bool tiled = false;
    bool planes = false;  // each sample has pieces of its own
    bool has_alpha = false, multiplied = false;
    size_t colours = 0;  // samples of a pixel that are no alpha: 1, 3 or, of inks, 4
    std::array<const uint16_t*, 3> palette{};

    [[nodiscard]] bool is_palette() const { return palette[0] != nullptr; }
    [[nodiscard]] uint64_t piece_bytes() const { return piece_stride * piece_height; }
    // Samples of a pixel that one piece holds.
    [[nodiscard]] size_t stored() const { return planes ? 1 : samples; }
    [[nodiscard]] size_t used() const { return colours + (has_alpha ? 1 : 0); }
};

// A file in memory, opened. libtiff takes pieces from where they lie.
class TiffFile {
  public:
    explicit TiffFile(std::span<const uint8_t> file) : file_(file) {
        struct Free {
            void operator()(TIFFOpenOptions* options) const { libtiff().OpenOptionsFree(options); }
        };
        const std::unique_ptr<TIFFOpenOptions, Free> options(functions_.OpenOptionsAlloc());
        if (!options) throw std::bad_alloc();
        functions_.OpenOptionsSetErrorHandlerExtR(options.get(), hear_error, this);
        functions_.OpenOptionsSetWarningHandlerExtR(options.get(), hear_warning, this);
        functions_.OpenOptionsSetMaxSingleMemAlloc(options.get(), most_at_once);
        tiff_.reset(functions_.ClientOpenExt("", "r", this, read, write, seek, close, size, map,
                                             unmap, options.get()));
        if (!tiff_) fail();
    }

    [[nodiscard]] TiffLayout layout();
    [[nodiscard]] uint32_t orientation() const {
        const auto tag = tag_or<uint16_t>(TIFFTAG_ORIENTATION);
        return tag >= 1 && tag <= 8 ? tag : 1;
    }
    // The piece in which a pixel lies, of one sample where they have pieces of their own.
    void read_piece(const TiffLayout& layout, uint32_t x, uint32_t y, uint16_t sample,
                    std::span<uint8_t> out);

  private:
    struct Close {
        void operator()(TIFF* tiff) const { libtiff().Close(tiff); }
    };
    // A piece is within max_decoded, which was checked; this is what libtiff needs beside it.
    static constexpr tmsize_t most_at_once = tmsize_t{64} << 20;

    template <typename Value>
    [[nodiscard]] Value tag_or(uint32_t tag) const {
        Value value = 0;
        functions_.GetFieldDefaulted(tiff_.get(), tag, &value);
        return value;
    }
    void check_kind(TiffLayout& layout);
    void check_pieces(TiffLayout& layout);

    [[noreturn]] void fail() const {
        if (words_.find("emory") != words_.npos && words_.find("alloc") != words_.npos)
            throw Error(SHF_E_LIMIT, "TIFF: " + words_,
                        "write the image again, in smaller strips or tiles");
        bad_tiff(words_.empty() ? "it cannot be read" : words_);
    }
    void hear(const char* words, va_list values) noexcept {
        if (!words_.empty()) return;
        std::array<char, 200> text{};
        std::vsnprintf(text.data(), text.size(), words, values);
        try {
            words_ = escape(text.data());
        } catch (...) {  // it fails without them
        }
    }

    static TiffFile& of(void* handle) { return *static_cast<TiffFile*>(handle); }
    static int hear_error(TIFF* /*tiff*/, void* own, const char* /*module*/, const char* words,
                          va_list values) {
        of(own).hear(words, values);
        return 1;
    }
    static int hear_warning(TIFF* /*tiff*/, void* own, const char* /*module*/, const char* words,
                            va_list values) {
        if (!of(own).decoding_) return 1;
        of(own).warned_ = true;
        of(own).hear(words, values);
        return 1;
    }
    static tmsize_t read(thandle_t handle, void* out, tmsize_t count) {
        TiffFile& own = of(handle);
        const size_t left = own.at_ < own.file_.size() ? own.file_.size() - own.at_ : 0;
        const size_t part = std::min(left, static_cast<size_t>(std::max<tmsize_t>(count, 0)));
        if (part > 0) std::memcpy(out, own.file_.data() + own.at_, part);
        own.at_ += part;
        return static_cast<tmsize_t>(part);
    }
    static tmsize_t write(thandle_t /*handle*/, void* /*from*/, tmsize_t /*count*/) { return -1; }
    static toff_t seek(thandle_t handle, toff_t to, int from) {
        TiffFile& own = of(handle);
        const toff_t base = from == SEEK_SET ? 0 : from == SEEK_CUR ? own.at_ : own.file_.size();
        own.at_ = static_cast<size_t>(base + to);
        return own.at_;
    }
    static int close(thandle_t /*handle*/) { return 0; }
    static toff_t size(thandle_t handle) { return of(handle).file_.size(); }
    static int map(thandle_t handle, void** base, toff_t* count) {
        *base = const_cast<uint8_t*>(of(handle).file_.data());  // not written to
        *count = of(handle).file_.size();
        return 1;
    }
    static void unmap(thandle_t /*handle*/, void* /*base*/, toff_t /*count*/) {}

    const Libtiff& functions_ = libtiff();
    const std::span<const uint8_t> file_;
    size_t at_ = 0;
    bool decoding_ = false, warned_ = false;
    std::string words_;  // of the first error
    std::unique_ptr<TIFF, Close> tiff_;
};

// What the samples of a pixel are.
void TiffFile::check_kind(TiffLayout& layout) {
    const auto numbers = tag_or<uint16_t>(TIFFTAG_SAMPLEFORMAT);
    if (numbers != SAMPLEFORMAT_UINT && numbers != SAMPLEFORMAT_VOID)
        unsupported_tiff("numbers that are signed, complex or floating point");
    constexpr std::array<uint16_t, 5> known{1, 2, 4, 8, 16};
    if (std::find(known.begin(), known.end(), layout.bits) == known.end())
        unsupported_tiff(std::to_string(layout.bits) + " bits");
    const auto compression = tag_or<uint16_t>(TIFFTAG_COMPRESSION);
    constexpr std::array<uint16_t, 10> codecs{COMPRESSION_NONE,          COMPRESSION_CCITTRLE,
                                              COMPRESSION_CCITTFAX3,     COMPRESSION_CCITTFAX4,
                                              COMPRESSION_LZW,           COMPRESSION_JPEG,
                                              COMPRESSION_PACKBITS,      COMPRESSION_DEFLATE,
                                              COMPRESSION_ADOBE_DEFLATE, COMPRESSION_ZSTD};
    if (std::find(codecs.begin(), codecs.end(), compression) == codecs.end() ||
        functions_.IsCODECConfigured(compression) == 0)
        unsupported_tiff("compression " + std::to_string(compression));
    switch (layout.photometric) {
        case PHOTOMETRIC_MINISWHITE:
        case PHOTOMETRIC_MINISBLACK: layout.colours = 1; break;
        case PHOTOMETRIC_RGB: layout.colours = 3; break;
        case PHOTOMETRIC_PALETTE: {
            std::array<uint16_t*, 3> palette{};
            if (layout.bits > 8) unsupported_tiff("a palette with 16 bits");
            if (functions_.GetField(tiff_.get(), TIFFTAG_COLORMAP, &palette[0], &palette[1],
                                    &palette[2]) == 0)
                bad_tiff("it has no palette");
            std::copy(palette.begin(), palette.end(), layout.palette.begin());
            layout.colours = 1;
            break;
        }
        case PHOTOMETRIC_SEPARATED:
            if (tag_or<uint16_t>(TIFFTAG_INKSET) != INKSET_CMYK || layout.bits != 8)
                unsupported_tiff("inks other than CMYK in 8 bits");
            layout.colours = 4;
            break;
        case PHOTOMETRIC_YCBCR:
            if (compression != COMPRESSION_JPEG || layout.planes)
                unsupported_tiff("YCbCr that is not compressed as JPEG");
            functions_.SetField(tiff_.get(), TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
            layout.colours = 3;
            break;
        default:
            unsupported_tiff("photometric interpretation " + std::to_string(layout.photometric));
    }
    if (layout.samples < layout.colours)
        bad_tiff(plural(layout.samples, "sample") + " in a pixel, which has " +
                 std::to_string(layout.colours));
    uint16_t extra = 0;
    uint16_t* kinds = nullptr;
    // Not the default, which is that they mean nothing.
    const bool is_said =
        functions_.GetField(tiff_.get(), TIFFTAG_EXTRASAMPLES, &extra, &kinds) != 0;
    const bool may_have =
        layout.samples > layout.colours && layout.colours != 4 && !layout.is_palette();
    if (may_have && is_said && extra > 0 && kinds != nullptr) {
        layout.multiplied = kinds[0] == EXTRASAMPLE_ASSOCALPHA;
        layout.has_alpha = layout.multiplied || kinds[0] == EXTRASAMPLE_UNASSALPHA;
    } else {
        layout.has_alpha = may_have && layout.colours == 3;  // as programs that left the tag out
    }
}

void TiffFile::check_pieces(TiffLayout& layout) {
    layout.tiled = functions_.IsTiled(tiff_.get()) != 0;
    layout.piece_width = layout.width;
    if (layout.tiled) {
        layout.piece_width = tag_or<uint32_t>(TIFFTAG_TILEWIDTH);
        layout.piece_height = tag_or<uint32_t>(TIFFTAG_TILELENGTH);
        layout.piece_stride = functions_.TileRowSize64(tiff_.get());
    } else {
        layout.piece_height = std::min(tag_or<uint32_t>(TIFFTAG_ROWSPERSTRIP), layout.height);
        layout.piece_stride = functions_.ScanlineSize64(tiff_.get());
    }
    // 2^32 pixels of 2^16 samples: no overflow.
    const uint64_t bits = uint64_t{layout.piece_width} * layout.bits;
    if (layout.piece_width == 0 || layout.piece_height == 0 ||
        bits > std::numeric_limits<uint64_t>::max() / layout.stored() - 7 ||
        layout.piece_stride != (bits * layout.stored() + 7) / 8)
        bad_tiff("strips or tiles that have no size, or another one than their samples");
}

TiffLayout TiffFile::layout() {
    TiffLayout layout;
    layout.width = tag_or<uint32_t>(TIFFTAG_IMAGEWIDTH);
    layout.height = tag_or<uint32_t>(TIFFTAG_IMAGELENGTH);
    if (layout.width == 0 || layout.height == 0) bad_tiff("an image of 0 pixels");
    layout.bits = tag_or<uint16_t>(TIFFTAG_BITSPERSAMPLE);
    layout.samples = tag_or<uint16_t>(TIFFTAG_SAMPLESPERPIXEL);
    layout.planes = tag_or<uint16_t>(TIFFTAG_PLANARCONFIG) == PLANARCONFIG_SEPARATE;
    uint16_t photometric = 0;
    if (functions_.GetField(tiff_.get(), TIFFTAG_PHOTOMETRIC, &photometric) == 0)
        bad_tiff("no photometric interpretation");
    layout.photometric = photometric;
    check_kind(layout);
    check_pieces(layout);
    if (layout.used() > layout.samples) bad_tiff("fewer samples than colours");
    return layout;
}

void TiffFile::read_piece(const TiffLayout& layout, uint32_t x, uint32_t y, uint16_t sample,
                          std::span<uint8_t> out) {
    decoding_ = true;
    tmsize_t made = -1;
    uint64_t wanted = layout.piece_bytes();
    const auto room = static_cast<tmsize_t>(out.size());
    if (layout.tiled) {
        made = functions_.ReadEncodedTile(
            tiff_.get(), functions_.ComputeTile(tiff_.get(), x, y, 0, sample), out.data(), room);
    } else {
        wanted = layout.piece_stride * std::min(layout.piece_height, layout.height - y);
        made = functions_.ReadEncodedStrip(
            tiff_.get(), functions_.ComputeStrip(tiff_.get(), y, sample), out.data(), room);
    }
    decoding_ = false;
    if (made < 0 || warned_) fail();
    if (static_cast<uint64_t>(made) < wanted) bad_tiff("a strip or tile is too short");
}

// The samples of one row of pieces become pixels.
class TiffPixels {
  public:
    TiffPixels(const TiffLayout& layout, const Pixels& to) : layout_(layout), to_(to) {
        if (!layout.is_palette()) return;
        for (size_t i = 0; i < size_t{1} << layout.bits; ++i)
            for (size_t c = 0; c < 3; ++c)
                palette_[i][c] = static_cast<uint8_t>(layout.palette[c][i] >> 8);
    }

    // Copies the samples of `count` pixels from a row of a piece, which holds `stored` samples of
    // each, to `samples_`, where they start at sample `first` of each pixel.
    void take(const uint8_t* row, size_t count, size_t stored, size_t first) {
        const size_t used = layout_.used();
        samples_.resize(count * used);
        const size_t wanted = std::min(stored, used - first);
        for (size_t i = 0; i < count; ++i)
            for (size_t s = 0; s < wanted; ++s)
                samples_[i * used + first + s] = sample_at(row, i * stored + s);
    }

    // Whether the samples of a piece are the pixels already.
    [[nodiscard]] bool are_pixels() const {
        return layout_.bits == 8 && to_.depth == 8 && !layout_.planes && !layout_.is_palette() &&
               !layout_.multiplied && layout_.colours != 4 && layout_.samples == to_.channels &&
               layout_.used() == to_.channels && layout_.photometric != PHOTOMETRIC_MINISWHITE;
    }
    void copy(const uint8_t* row, uint32_t x, uint32_t y, size_t count) {
        std::memcpy(to_.row(y) + x * to_.pixel_size(), row, count * to_.pixel_size());
    }

    // What take() gave becomes pixels from (x, y) on.
    void put(uint32_t x, uint32_t y, size_t count) {
        uint8_t* out = to_.row(y) + x * to_.pixel_size();
        if (layout_.colours == 4) return put_inks(out, count);
        if (to_.depth == 16)
            put_samples<uint16_t>(reinterpret_cast<uint16_t*>(out), count);
        else
            put_samples<uint8_t>(out, count);
    }

  private:
    [[nodiscard]] uint16_t sample_at(const uint8_t* row, size_t number) const {
        if (layout_.bits == 8) return row[number];
        if (layout_.bits == 16) {
            uint16_t value = 0;  // libtiff made it one of this machine
            std::memcpy(&value, row + 2 * number, sizeof value);
            return value;
        }
        const size_t bit = number * layout_.bits;
        const unsigned most = (1U << layout_.bits) - 1;
        return static_cast<uint16_t>(row[bit / 8] >> (8 - layout_.bits - bit % 8) & most);
    }

    // A level of the image as one of Sample.
    template <typename Sample>
    [[nodiscard]] Sample level(uint32_t value) const {
        if (layout_.bits == 16)
            return static_cast<Sample>(sizeof(Sample) == 2 ? value : (value + 128) / 257);
        const uint32_t most = (1U << layout_.bits) - 1;
        return static_cast<Sample>(value * (255 / most));
    }

    template <typename Sample>
    void put_samples(Sample* out, size_t count) const {
        constexpr uint32_t most = std::numeric_limits<Sample>::max();
        const size_t used = layout_.used(), channels = to_.channels;
        const uint16_t* in = samples_.data();
        const bool inverted = layout_.photometric == PHOTOMETRIC_MINISWHITE;
        for (size_t i = 0; i < count; ++i, in += used, out += channels) {
            std::array<uint32_t, 4> pixel{0, 0, 0, most};
            if (layout_.is_palette()) {
                std::copy_n(palette_[in[0]].begin(), 3, pixel.begin());
            } else {
                for (size_t c = 0; c < layout_.colours; ++c) pixel[c] = level<Sample>(in[c]);
                if (layout_.has_alpha) pixel[3] = level<Sample>(in[layout_.colours]);
                if (inverted) pixel[0] = most - pixel[0];
                if (layout_.colours == 1) pixel[1] = pixel[2] = pixel[0];
                if (layout_.multiplied) divide(pixel, most);
            }
            for (size_t c = 0; c < channels; ++c) out[c] = static_cast<Sample>(pixel[c]);
        }
    }
    // As Pillow does.
    static void divide(std::array<uint32_t, 4>& pixel, uint32_t most) {
        const uint64_t alpha = pixel[3];
        for (size_t c = 0; c < 3; ++c)
            pixel[c] = alpha == 0 ? 0
                                  : static_cast<uint32_t>(std::min(
                                        uint64_t{most} * pixel[c] / alpha, uint64_t{most}));
    }
    // cmyk2rgb() of Pillow.
    void put_inks(uint8_t* out, size_t count) const {
        const uint16_t* in = samples_.data();
        for (size_t i = 0; i < count; ++i, in += 4, out += to_.channels) {
            const uint32_t light = 255U - in[3];
            for (size_t c = 0; c < 3; ++c) {
                const uint32_t product = in[c] * light + 128;
                const uint32_t ink = ((product >> 8) + product) >> 8;
                out[c] = static_cast<uint8_t>(light - std::min(light, ink));
            }
            if (to_.channels == 4) out[3] = 255;
        }
    }

    const TiffLayout& layout_;
    const Pixels& to_;
    std::array<std::array<uint8_t, 3>, 256> palette_{};
    std::vector<uint16_t> samples_;
};

}  // namespace

ImageHeader read_tiff_header(std::span<const uint8_t> file, bool orient) {
    TiffFile tiff(file);
    const TiffLayout layout = tiff.layout();
    const bool grey = layout.colours == 1 && !layout.is_palette();
    // Of planes the pieces of all samples are there at once.
    uint64_t kept = 0;
    if (__builtin_mul_overflow(layout.piece_stride, layout.piece_height, &kept) ||
        __builtin_mul_overflow(kept, layout.planes ? layout.used() : 1, &kept))
        kept = std::numeric_limits<uint64_t>::max();
    return {.format = ImageFormat::tiff,
            .width = layout.width,
            .height = layout.height,
            .channels = (grey ? 1U : 3U) + (layout.has_alpha ? 1U : 0U),
            .depth = layout.bits == 16 ? 16U : 8U,
            .orientation = orient ? tiff.orientation() : 1,
            .kept = kept};
}

void decode_tiff(std::span<const uint8_t> file, const ImageHeader& header, const Pixels& to) {
    TiffFile tiff(file);
    const TiffLayout layout = tiff.layout();
    if (layout.width != header.width || layout.height != header.height)
        bad_tiff("the header is ambiguous");
    const auto piece_bytes = static_cast<size_t>(layout.piece_bytes());
    const size_t planes = layout.planes ? layout.used() : 1;
    const auto pieces = std::make_unique_for_overwrite<uint8_t[]>(piece_bytes * planes);
    TiffPixels pixels(layout, to);
    for (uint64_t top = 0; top < layout.height; top += layout.piece_height)
        for (uint64_t left = 0; left < layout.width; left += layout.piece_width) {
            for (size_t plane = 0; plane < planes; ++plane)
                tiff.read_piece(layout, static_cast<uint32_t>(left), static_cast<uint32_t>(top),
                                static_cast<uint16_t>(plane),
                                {pieces.get() + plane * piece_bytes, piece_bytes});
            const uint64_t rows = std::min<uint64_t>(layout.piece_height, layout.height - top);
            const uint64_t columns = std::min<uint64_t>(layout.piece_width, layout.width - left);
            for (uint64_t y = 0; y < rows; ++y) {
                if (pixels.are_pixels()) {
                    pixels.copy(pieces.get() + y * layout.piece_stride, static_cast<uint32_t>(left),
                                static_cast<uint32_t>(top + y), columns);
                    continue;
                }
                for (size_t plane = 0; plane < planes; ++plane)
                    pixels.take(pieces.get() + plane * piece_bytes + y * layout.piece_stride,
                                columns, layout.stored(), plane);
                pixels.put(static_cast<uint32_t>(left), static_cast<uint32_t>(top + y), columns);
            }
        }
}

const char* tiff_version() noexcept {
    try {
        // "LIBTIFF, Version 4.5.0" and a copyright.
        static const std::string text = [] {
            const std::string words = libtiff().GetVersion();
            const size_t number = words.find_first_of("0123456789");
            if (number == words.npos) return std::string("libtiff");
            return "libtiff " + words.substr(number, words.find_first_of("\r\n ", number) - number);
        }();
        return text.c_str();
    } catch (...) {  // this system has none
        return nullptr;
    }
}

}  // namespace shf
