#include "image/jxl.h"

#include "core/dynamic_library.h"
#include "core/error.h"

#include <jxl/decode.h>
#include <jxl/version.h>

#include <limits>
#include <memory>
#include <new>
#include <string>

namespace shf {

namespace {

// Its functions, under their names without "JxlDecoder".
struct Libjxl {
    decltype(&JxlDecoderVersion) Version;
    decltype(&JxlDecoderCreate) Create;
    decltype(&JxlDecoderDestroy) Destroy;
    decltype(&JxlDecoderSubscribeEvents) SubscribeEvents;
    decltype(&JxlDecoderSetKeepOrientation) SetKeepOrientation;
    decltype(&JxlDecoderSetUnpremultiplyAlpha) SetUnpremultiplyAlpha;
    decltype(&JxlDecoderSetInput) SetInput;
    decltype(&JxlDecoderCloseInput) CloseInput;
    decltype(&JxlDecoderProcessInput) ProcessInput;
    decltype(&JxlDecoderGetBasicInfo) GetBasicInfo;
    decltype(&JxlDecoderImageOutBufferSize) ImageOutBufferSize;
    decltype(&JxlDecoderSetImageOutBuffer) SetImageOutBuffer;
};

// Each version has a binary interface of its own before 1.0.
#define SHF_JXL_TEXT_OF(number) #number
#define SHF_JXL_TEXT(number) SHF_JXL_TEXT_OF(number)
#if JPEGXL_MAJOR_VERSION == 0
constexpr const char* jxl_file = "libjxl.so.0." SHF_JXL_TEXT(JPEGXL_MINOR_VERSION);
#else
constexpr const char* jxl_file = "libjxl.so." SHF_JXL_TEXT(JPEGXL_MAJOR_VERSION);
#endif

const Libjxl& libjxl() {
    static const Libjxl functions = [] {
        const DynamicLibrary library(
            "libjxl", jxl_file,
            "install the libjxl that this library was built with: its package is called libjxl");
        Libjxl found{};
        library.find("JxlDecoderVersion", found.Version);
        library.find("JxlDecoderCreate", found.Create);
        library.find("JxlDecoderDestroy", found.Destroy);
        library.find("JxlDecoderSubscribeEvents", found.SubscribeEvents);
        library.find("JxlDecoderSetKeepOrientation", found.SetKeepOrientation);
        library.find("JxlDecoderSetUnpremultiplyAlpha", found.SetUnpremultiplyAlpha);
        library.find("JxlDecoderSetInput", found.SetInput);
        library.find("JxlDecoderCloseInput", found.CloseInput);
        library.find("JxlDecoderProcessInput", found.ProcessInput);
        library.find("JxlDecoderGetBasicInfo", found.GetBasicInfo);
        library.find("JxlDecoderImageOutBufferSize", found.ImageOutBufferSize);
        library.find("JxlDecoderSetImageOutBuffer", found.SetImageOutBuffer);
        return found;
    }();
    return functions;
}

// One reading of a file.
class JxlReader {
  public:
    JxlReader(std::span<const uint8_t> file, int events) : decoder_(functions_.Create(nullptr)) {
        if (!decoder_) throw std::bad_alloc();
        check(functions_.SubscribeEvents(decoder_.get(), events));
        check(functions_.SetKeepOrientation(decoder_.get(), JXL_TRUE));
        check(functions_.SetUnpremultiplyAlpha(decoder_.get(), JXL_TRUE));
        check(functions_.SetInput(decoder_.get(), file.data(), file.size()));
        functions_.CloseInput(decoder_.get());
    }

    // Up to the next event, which is of those that were asked for.
    void read_to(JxlDecoderStatus event) {
        const JxlDecoderStatus found = functions_.ProcessInput(decoder_.get());
        if (found == event) return;
        if (found == JXL_DEC_NEED_MORE_INPUT) bad_image("JPEG XL", "the file ends too early");
        bad_image("JPEG XL",
                  found == JXL_DEC_ERROR ? "the bitstream is damaged" : "it has no image");
    }
    [[nodiscard]] JxlBasicInfo info() const {
        JxlBasicInfo info{};
        check(functions_.GetBasicInfo(decoder_.get(), &info));
        return info;
    }
    void write_to(const Pixels& to) {
        const JxlPixelFormat format{to.channels, to.depth == 16 ? JXL_TYPE_UINT16 : JXL_TYPE_UINT8,
                                    JXL_NATIVE_ENDIAN, 0};
        const size_t room = to.stride() * to.height;
        size_t size = 0;
        check(functions_.ImageOutBufferSize(decoder_.get(), &format, &size));
        if (size != room) bad_image("JPEG XL", "the header is ambiguous");
        check(functions_.SetImageOutBuffer(decoder_.get(), &format, to.data, room));
    }

  private:
    struct Destroy {
        void operator()(JxlDecoder* decoder) const { libjxl().Destroy(decoder); }
    };
    static void check(JxlDecoderStatus status) {
        if (status != JXL_DEC_SUCCESS) bad_image("JPEG XL", "the bitstream is damaged");
    }

    const Libjxl& functions_ = libjxl();
    std::unique_ptr<JxlDecoder, Destroy> decoder_;
};

}  // namespace

ImageHeader read_jxl_header(std::span<const uint8_t> file, bool orient) {
    JxlReader reader(file, JXL_DEC_BASIC_INFO);
    reader.read_to(JXL_DEC_BASIC_INFO);
    const JxlBasicInfo info = reader.info();
    if (info.have_animation != JXL_FALSE)
        throw Error(SHF_E_UNSUPPORTED, "JPEG XL with an animation",
                    "store its frames as single images, or take the field as bytes");
    if (info.num_color_channels != 1 && info.num_color_channels != 3)
        throw Error(SHF_E_UNSUPPORTED,
                    "JPEG XL with " + std::to_string(info.num_color_channels) + " colours",
                    "convert the image");
    if (info.xsize == 0 || info.ysize == 0) bad_image("JPEG XL", "an image of 0 pixels");
    const uint32_t channels = info.num_color_channels + (info.alpha_bits > 0 ? 1 : 0);
    // libjxl computes in 32 bits, and may need all of the image at once.
    uint64_t kept = 0;
    if (__builtin_mul_overflow(uint64_t{info.xsize} * info.ysize, 4 * channels, &kept))
        kept = std::numeric_limits<uint64_t>::max();
    const auto turn = static_cast<uint32_t>(info.orientation);
    return {.format = ImageFormat::jxl,
            .width = info.xsize,
            .height = info.ysize,
            .channels = channels,
            .depth = info.bits_per_sample > 8 || info.exponent_bits_per_sample > 0 ? 16U : 8U,
            .orientation = orient && turn >= 1 && turn <= 8 ? turn : 1,
            .kept = kept};
}

void decode_jxl(std::span<const uint8_t> file, const ImageHeader& header, const Pixels& to) {
    JxlReader reader(file, JXL_DEC_BASIC_INFO | JXL_DEC_FULL_IMAGE);
    reader.read_to(JXL_DEC_BASIC_INFO);
    const JxlBasicInfo info = reader.info();
    if (info.xsize != header.width || info.ysize != header.height)
        bad_image("JPEG XL", "the header is ambiguous");
    reader.read_to(JXL_DEC_NEED_IMAGE_OUT_BUFFER);
    reader.write_to(to);
    reader.read_to(JXL_DEC_FULL_IMAGE);
}

const char* jxl_version() noexcept {
    try {
        static const std::string text = [] {
            const uint32_t version = libjxl().Version();  // decimal: 7000 is 0.7.0
            return "libjxl " + std::to_string(version / 1000000) + "." +
                   std::to_string(version / 1000 % 1000) + "." + std::to_string(version % 1000);
        }();
        return text.c_str();
    } catch (...) {  // this system has none
        return nullptr;
    }
}

}  // namespace shf
