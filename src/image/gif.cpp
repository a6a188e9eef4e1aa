#include "image/gif.h"

#include "core/dynamic_library.h"
#include "core/error.h"
#include "core/little_endian.h"

#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

namespace {

// Its functions, under their names without "DGif".
struct Giflib {
    decltype(&DGifOpen) Open;
    decltype(&DGifCloseFile) CloseFile;
    decltype(&DGifGetRecordType) GetRecordType;
    decltype(&DGifGetImageDesc) GetImageDesc;
    decltype(&DGifGetLine) GetLine;
    decltype(&DGifGetExtension) GetExtension;
    decltype(&DGifGetExtensionNext) GetExtensionNext;
    decltype(&GifErrorString) ErrorString;
};

const Giflib& giflib() {
    static const Giflib functions = [] {
        const DynamicLibrary library("giflib", "libgif.so.7",
                                     "install libgif7 (Debian, Ubuntu) or giflib (Fedora)");
        Giflib found{};
        library.find("DGifOpen", found.Open);
        library.find("DGifCloseFile", found.CloseFile);
        library.find("DGifGetRecordType", found.GetRecordType);
        library.find("DGifGetImageDesc", found.GetImageDesc);
        library.find("DGifGetLine", found.GetLine);
        library.find("DGifGetExtension", found.GetExtension);
        library.find("DGifGetExtensionNext", found.GetExtensionNext);
        library.find("GifErrorString", found.ErrorString);
        return found;
    }();
    return functions;
}

[[noreturn]] void bad_gif(const std::string& cause) {
    bad_image("GIF", cause);
}

using GifBytes = std::span<const uint8_t>;

// The first frame and what it needs; "GIF89a Specification", sections 17 to 23.
struct GifFrame {
    uint32_t screen_width = 0, screen_height = 0;
    uint32_t left = 0, top = 0, width = 0, height = 0;
    bool interlaced = false;
    std::optional<uint8_t> transparent;  // colour
    GifBytes palette;                    // red, green, blue; none: levels of grey
    size_t end = 0;                      // in the file

    // Of the image: the screen, or more where the frame is larger than that.
    [[nodiscard]] uint32_t image_width() const { return std::max(screen_width, left + width); }
    [[nodiscard]] uint32_t image_height() const { return std::max(screen_height, top + height); }
};

// Goes through the blocks of a file.
class GifBlocks {
  public:
    explicit GifBlocks(GifBytes file, size_t at = 0) : file_(file), at_(at) {}

    [[nodiscard]] size_t at() const { return at_; }
    GifBytes take(size_t count) {
        if (count > file_.size() - at_) bad_gif("the file ends too early");
        const GifBytes bytes = file_.subspan(at_, count);
        at_ += count;
        return bytes;
    }
    uint8_t byte() { return take(1)[0]; }
    // What flags say of a table of colours behind them.
    GifBytes palette(uint8_t flags) {
        return (flags & 0x80) == 0 ? GifBytes() : take(size_t{3} << ((flags & 7) + 1));
    }
    // Up to the empty one. Returns the first one.
    GifBytes sub_blocks() {
        const GifBytes first = take(byte());
        if (!first.empty())
            while (!take(byte()).empty()) {
            }
        return first;
    }
    // Of an extension, whose first byte was read. Returns its first piece and what it is.
    std::pair<uint8_t, GifBytes> extension() {
        const uint8_t label = byte();
        return {label, sub_blocks()};
    }

  private:
    const GifBytes file_;
    size_t at_;
};

constexpr uint8_t extension_block = 0x21, image_block = 0x2c, end_block = 0x3b;
constexpr uint8_t graphic_control = 0xf9;

GifFrame read_first_frame(GifBytes file) {
    GifBlocks blocks(file);
    blocks.take(6);
    const GifBytes screen = blocks.take(7);
    GifFrame frame;
    frame.screen_width = le16(&screen[0]);
    frame.screen_height = le16(&screen[2]);
    frame.palette = blocks.palette(screen[4]);
    for (;;) {
        const uint8_t kind = blocks.byte();
        if (kind == extension_block) {
            const auto [label, piece] = blocks.extension();
            if (label != graphic_control) continue;
            if (piece.size() != 4) bad_gif("a graphic control extension that is none");
            frame.transparent.reset();
            if ((piece[0] & 1) != 0) frame.transparent = piece[3];
            continue;
        }
        if (kind == end_block) bad_gif("it has no image");
        if (kind != image_block) bad_gif("a block of the unknown kind " + std::to_string(kind));
        const GifBytes image = blocks.take(9);
        frame.left = le16(&image[0]);
        frame.top = le16(&image[2]);
        frame.width = le16(&image[4]);
        frame.height = le16(&image[6]);
        frame.interlaced = (image[8] & 0x40) != 0;
        if (const GifBytes own = blocks.palette(image[8]); !own.empty()) frame.palette = own;
        blocks.byte();  // how many bits the first codes have
        blocks.sub_blocks();
        frame.end = blocks.at();
        if (frame.width == 0 || frame.height == 0) bad_gif("an image of 0 pixels");
        return frame;
    }
}

// Other frames are not wanted, but a file that was cut is no good one.
void check_gif_end(GifBytes file, const GifFrame& frame) {
    GifBlocks blocks(file, frame.end);
    for (;;) {
        switch (const uint8_t kind = blocks.byte()) {
            case end_block: return;
            case extension_block: blocks.extension(); break;
            case image_block:
                blocks.palette(blocks.take(9)[8]);
                blocks.byte();
                blocks.sub_blocks();
                break;
            default: bad_gif("a block of the unknown kind " + std::to_string(kind));
        }
    }
}

// One reading of a file up to the codes of its first image.
class GifReader {
  public:
    explicit GifReader(GifBytes file) : file_(file) {
        int error = 0;
        gif_.reset(functions_.Open(this, give, &error));
        if (!gif_) fail(error);
        for (;;) {
            GifRecordType kind = UNDEFINED_RECORD_TYPE;
            check(functions_.GetRecordType(gif_.get(), &kind));
            if (kind == IMAGE_DESC_RECORD_TYPE) break;
            if (kind != EXTENSION_RECORD_TYPE) bad_gif("it has no image");
            int label = 0;
            GifByteType* piece = nullptr;
            check(functions_.GetExtension(gif_.get(), &label, &piece));
            while (piece != nullptr) check(functions_.GetExtensionNext(gif_.get(), &piece));
        }
        check(functions_.GetImageDesc(gif_.get()));
    }

    void read_line(std::span<GifPixelType> line) {
        check(functions_.GetLine(gif_.get(), line.data(), static_cast<int>(line.size())));
    }

  private:
    struct Close {
        void operator()(GifFileType* gif) const {
            int error = 0;
            giflib().CloseFile(gif, &error);
        }
    };

    static int give(GifFileType* gif, GifByteType* out, int count) {
        GifBytes& file = static_cast<GifReader*>(gif->UserData)->file_;
        const size_t size = std::min(file.size(), static_cast<size_t>(std::max(count, 0)));
        std::copy_n(file.begin(), size, out);
        file = file.subspan(size);
        return static_cast<int>(size);
    }
    void check(int result) const {
        if (result == GIF_ERROR) fail(gif_->Error);
    }
    [[noreturn]] void fail(int error) const {
        if (error == D_GIF_ERR_NOT_ENOUGH_MEM) throw std::bad_alloc();
        const char* const words = functions_.ErrorString(error);
        bad_gif(words != nullptr ? words : "the pixels are damaged");
    }

    const Giflib& functions_ = giflib();
    GifBytes file_;  // what is left of it
    std::unique_ptr<GifFileType, Close> gif_;
};

using GifColours = std::array<std::array<uint8_t, 4>, 256>;

GifColours colours_of(const GifFrame& frame) {
    GifColours colours{};
    for (size_t i = 0; i < colours.size(); ++i) {
        const auto level = static_cast<uint8_t>(i);
        if (frame.palette.empty())
            colours[i] = {level, level, level, 255};
        else if (3 * i < frame.palette.size())
            colours[i] = {frame.palette[3 * i], frame.palette[3 * i + 1], frame.palette[3 * i + 2],
                          255};
        else
            colours[i] = {0, 0, 0, 255};
    }
    if (frame.transparent) colours[*frame.transparent][3] = 0;
    return colours;
}

// The rows of an interlaced image in the order in which they come (appendix E).
struct GifPass {
    uint32_t first, step;
};
constexpr GifPass interlaced_passes[] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}};
constexpr GifPass whole_pass[] = {{0, 1}};

}  // namespace

ImageHeader read_gif_header(std::span<const uint8_t> file, bool /*orient*/) {
    const GifFrame frame = read_first_frame(file);
    return {.format = ImageFormat::gif,
            .width = frame.image_width(),
            .height = frame.image_height(),
            .channels = frame.transparent ? 4U : 3U,
            .depth = 8};
}

void decode_gif(std::span<const uint8_t> file, const ImageHeader& header, const Pixels& to) {
    const GifFrame frame = read_first_frame(file);
    check_gif_end(file, frame);
    const GifColours colours = colours_of(frame);
    const size_t channels = to.channels;
    const auto paint = [&](uint8_t* out, size_t colour) {
        std::memcpy(out, colours[colour].data(), channels);
    };
    if (frame.width < header.width || frame.height < header.height)
        for (uint32_t y = 0; y < to.height; ++y)
            for (uint32_t x = 0; x < to.width; ++x)
                paint(to.row(y) + x * channels, frame.transparent.value_or(0));
    GifReader reader(file);
    std::vector<GifPixelType> line(frame.width);
    const std::span<const GifPass> passes =
        frame.interlaced ? std::span<const GifPass>(interlaced_passes) : whole_pass;
    for (const GifPass& pass : passes)
        for (uint32_t y = pass.first; y < frame.height; y += pass.step) {
            reader.read_line(line);
            uint8_t* out = to.row(size_t{frame.top} + y) + frame.left * channels;
            for (const GifPixelType colour : line) {
                paint(out, colour);
                out += channels;
            }
        }
}

const char* gif_version() noexcept {
    // It does not tell its version at run time.
    try {
        giflib();
        static const std::string text = "giflib " + std::to_string(GIFLIB_MAJOR) + "." +
                                        std::to_string(GIFLIB_MINOR) + "." +
                                        std::to_string(GIFLIB_RELEASE);
        return text.c_str();
    } catch (...) {  // this system has none
        return nullptr;
    }
}

}  // namespace shf
