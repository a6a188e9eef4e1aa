#include "image/avif.h"

#include "core/dynamic_library.h"
#include "core/error.h"

#include <avif/avif.h>

#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace shf {

namespace {

// Its functions, under their names without "avif".
struct Libavif {
    decltype(&avifVersion) Version;
    decltype(&avifResultToString) ResultToString;
    decltype(&avifDecoderCreate) DecoderCreate;
    decltype(&avifDecoderDestroy) DecoderDestroy;
    decltype(&avifDecoderSetIOMemory) DecoderSetIOMemory;
    decltype(&avifDecoderParse) DecoderParse;
    decltype(&avifDecoderNextImage) DecoderNextImage;
    decltype(&avifRGBImageSetDefaults) RGBImageSetDefaults;
    decltype(&avifImageYUVToRGB) ImageYUVToRGB;
};

// Its structures are other ones since version 1.0, and so is the name of the library.
constexpr const char* avif_file = AVIF_VERSION_MAJOR == 0 ? "libavif.so.15" : "libavif.so.16";

const Libavif& libavif() {
    static const Libavif functions = [] {
        const DynamicLibrary library(
            "libavif", avif_file,
            "install the libavif that this library was built with: its package is called libavif");
        Libavif found{};
        library.find("avifVersion", found.Version);
        library.find("avifResultToString", found.ResultToString);
        library.find("avifDecoderCreate", found.DecoderCreate);
        library.find("avifDecoderDestroy", found.DecoderDestroy);
        library.find("avifDecoderSetIOMemory", found.DecoderSetIOMemory);
        library.find("avifDecoderParse", found.DecoderParse);
        library.find("avifDecoderNextImage", found.DecoderNextImage);
        library.find("avifRGBImageSetDefaults", found.RGBImageSetDefaults);
        library.find("avifImageYUVToRGB", found.ImageYUVToRGB);
        return found;
    }();
    return functions;
}

// One reading of a file, whose boxes were looked at.
class AvifReader {
  public:
    explicit AvifReader(std::span<const uint8_t> file) : decoder_(functions_.DecoderCreate()) {
        if (!decoder_) throw std::bad_alloc();
        decoder_->maxThreads = 1;  // other fields are decoded beside it
        decoder_->ignoreExif = decoder_->ignoreXMP = AVIF_TRUE;
        check(functions_.DecoderSetIOMemory(decoder_.get(), file.data(), file.size()));
        check(functions_.DecoderParse(decoder_.get()));
    }

    [[nodiscard]] const avifImage& image() const { return *decoder_->image; }
    [[nodiscard]] int count() const { return decoder_->imageCount; }
    [[nodiscard]] bool has_alpha() const { return decoder_->alphaPresent != AVIF_FALSE; }

    void decode(const Pixels& to) {
        check(functions_.DecoderNextImage(decoder_.get()));
        if (image().width != to.width || image().height != to.height)
            bad_image("AVIF", "the header is ambiguous");
        avifRGBImage rgb{};
        functions_.RGBImageSetDefaults(&rgb, decoder_->image);
        const bool grey = to.channels == 1;
        std::vector<uint8_t> colours;
        Pixels target = to;
        if (grey) {  // libavif makes three equal channels of it
            target.channels = 3;
            colours.resize(target.stride() * target.height);
            target.data = colours.data();
        }
        rgb.format = to.channels == 4 ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
        rgb.depth = to.depth;
        rgb.alphaPremultiplied = AVIF_FALSE;
        rgb.pixels = target.data;
        if (target.stride() > std::numeric_limits<uint32_t>::max())
            bad_image("AVIF", "a row is too long");
        rgb.rowBytes = static_cast<uint32_t>(target.stride());
        check(functions_.ImageYUVToRGB(decoder_->image, &rgb));
        const size_t number = to.depth / 8;
        for (size_t i = 0; grey && i < size_t{to.width} * to.height; ++i)
            std::memcpy(to.data + i * number, target.data + 3 * i * number, number);
    }

  private:
    struct Destroy {
        void operator()(avifDecoder* decoder) const { libavif().DecoderDestroy(decoder); }
    };
    void check(avifResult result) const {
        switch (result) {
            case AVIF_RESULT_OK: return;
            case AVIF_RESULT_OUT_OF_MEMORY: throw std::bad_alloc();
            case AVIF_RESULT_NO_CODEC_AVAILABLE:
            case AVIF_RESULT_NOT_IMPLEMENTED:
            case AVIF_RESULT_UNSUPPORTED_DEPTH:
                throw Error(SHF_E_UNSUPPORTED,
                            std::string("AVIF: ") + functions_.ResultToString(result),
                            "convert the image");
            default: bad_image("AVIF", functions_.ResultToString(result));
        }
    }

    const Libavif& functions_ = libavif();
    std::unique_ptr<avifDecoder, Destroy> decoder_;
};

// The EXIF orientation of irot and imir, which are done one after another (ISO/IEC
// 23000-22, 7.3.6.7).
uint32_t turn_of(const avifImage& image) {
    const bool rotated = (image.transformFlags & AVIF_TRANSFORM_IROT) != 0;
    const uint32_t angle = rotated ? image.irot.angle & 3U : 0;
    constexpr uint32_t turned[] = {1, 8, 3, 6};            // anti-clockwise
    constexpr uint32_t mirrored_rows[] = {4, 5, 2, 7};     // and then top and bottom exchanged
    constexpr uint32_t mirrored_columns[] = {2, 7, 4, 5};  // and then left and right
    if ((image.transformFlags & AVIF_TRANSFORM_IMIR) == 0) return turned[angle];
#if AVIF_VERSION_MAJOR == 0
    const bool columns = image.imir.mode != 0;
#else
    const bool columns = image.imir.axis != 0;
#endif
    return columns ? mirrored_columns[angle] : mirrored_rows[angle];
}

}  // namespace

ImageHeader read_avif_header(std::span<const uint8_t> file, bool orient) {
    const AvifReader reader(file);
    const avifImage& image = reader.image();
    if (reader.count() != 1)
        throw Error(SHF_E_UNSUPPORTED, "AVIF with a sequence of images",
                    "store its frames as single images, or take the field as bytes");
    if (image.width == 0 || image.height == 0) bad_image("AVIF", "an image of 0 pixels");
    // Luma, two of chroma and alpha, and of grey images three channels more.
    const uint64_t number = image.depth > 8 ? 2 : 1;
    uint64_t kept = 0;
    if (__builtin_mul_overflow(uint64_t{image.width} * image.height, 4 * number, &kept))
        kept = std::numeric_limits<uint64_t>::max();
    const bool grey = image.yuvFormat == AVIF_PIXEL_FORMAT_YUV400;
    return {.format = ImageFormat::avif,
            .width = image.width,
            .height = image.height,
            .channels = (grey ? 1U : 3U) + (reader.has_alpha() ? 1U : 0U),
            .depth = image.depth > 8 ? 16U : 8U,
            .orientation = orient ? turn_of(image) : 1,
            .kept = kept};
}

void decode_avif(std::span<const uint8_t> file, const ImageHeader& /*header*/, const Pixels& to) {
    AvifReader(file).decode(to);
}

const char* avif_version() noexcept {
    try {
        static const std::string text = std::string("libavif ") + libavif().Version();
        return text.c_str();
    } catch (...) {  // this system has none
        return nullptr;
    }
}

}  // namespace shf
