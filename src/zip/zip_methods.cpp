// The compression methods of ZIP entries, each through its library.
#include "codec/codec.h"
#include "core/little_endian.h"
#include "core/options.h"
#include "zip/zip_decoder.h"
#include "zip/zip_entry.h"

#include <libdeflate.h>
#include <lzma.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>

namespace shf {

namespace {

constexpr const char* damage_help = "copy the file again";

[[nodiscard]] Error damaged(std::string cause) {
    return Error(SHF_E_FORMAT, std::move(cause), damage_help);
}

Error too_short(uint64_t have, uint64_t size) {
    return damaged("the data ends after " + std::to_string(have) + " of " + plural(size, "byte"));
}

Error too_long(uint64_t size) {
    return damaged("the data continues after its " + plural(size, "byte"));
}

Error left_over(uint64_t bytes) {
    return damaged(plural(bytes, "byte") + " after the compressed data");
}

void inflate(std::span<const uint8_t> in, std::span<uint8_t> out, ZipScratch& scratch) {
    size_t used = 0, made = 0;
    const libdeflate_result result = libdeflate_deflate_decompress_ex(
        scratch.inflate(), in.data(), in.size(), out.data(), out.size(), &used, &made);
    if (result == LIBDEFLATE_INSUFFICIENT_SPACE) throw too_long(out.size());
    if (result != LIBDEFLATE_SUCCESS) throw damaged("damaged deflate data");
    if (made < out.size()) throw too_short(made, out.size());
    if (used < in.size()) throw left_over(in.size() - used);
}

// Deflate data in pieces: libdeflate takes streams as a whole only.
class Deflated final : public Codec {
  public:
    Deflated() {
        if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
    }
    Deflated(const Deflated&) = delete;
    Deflated& operator=(const Deflated&) = delete;
    ~Deflated() override { inflateEnd(&stream_); }

    Step begin(Bytes /*head*/) override { return {}; }
    [[nodiscard]] bool exact() const override { return true; }
    Step decode(Bytes in, std::span<uint8_t> out) override {
        stream_.next_in = const_cast<Bytef*>(in.data());  // not written to
        stream_.avail_in = static_cast<uInt>(in.size());
        stream_.next_out = out.data();
        stream_.avail_out = static_cast<uInt>(out.size());
        const int result = inflate(&stream_, Z_NO_FLUSH);
        if (result == Z_MEM_ERROR) throw std::bad_alloc();
        const Step step{in.size() - stream_.avail_in, out.size() - stream_.avail_out,
                        result == Z_STREAM_END ? Step::end : Step::more};
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
            return fail(step, SHF_E_FORMAT, "damaged deflate data");
        return step;
    }

  private:
    z_stream stream_{};
};

// LZMA1 without a container of its own (APPNOTE 5.8.8): version, length of the properties,
// properties, data; flag bit 1 says that an end mark follows the data. Without one only a decoder
// that knows the size can tell where the data ends, so liblzma gets the header of a .lzma file:
// properties and size, all ones when the mark is to tell it.
class Lzma final : public Codec {
  public:
    Lzma(const ZipEntry& entry, const Options& options)
        : size_((entry.flags & (1 << 1)) != 0 ? UINT64_MAX : entry.size),
          max_window_(options.max_window) {}
    Lzma(const Lzma&) = delete;
    Lzma& operator=(const Lzma&) = delete;
    ~Lzma() override { lzma_end(&stream_); }

    Step begin(Bytes head) override {
        if (head.size() < head_size + properties_size || le16(&head[2]) != properties_size)
            return fail({}, SHF_E_FORMAT, "a damaged LZMA header");
        const uint32_t window = le32(&head[head_size + 1]);
        if (window > max_window_)
            return fail({}, SHF_E_LIMIT,
                        "the data needs a window of " + plural(window, "byte") +
                            ", max_window is " + std::to_string(max_window_),
                        "raise max_window");
        std::array<uint8_t, properties_size + size_size> header;
        std::copy_n(&head[head_size], properties_size, header.begin());
        uint64_t size = size_;
        for (size_t i = properties_size; i < header.size(); ++i, size >>= 8)
            header[i] = size & 0xff;
        if (lzma_alone_decoder(&stream_, UINT64_MAX) != LZMA_OK) throw std::bad_alloc();
        uint8_t room = 0;  // it wants some even for the header
        stream_.next_in = header.data();
        stream_.avail_in = header.size();
        stream_.next_out = &room;
        stream_.avail_out = 1;
        switch (lzma_code(&stream_, LZMA_RUN)) {
            case LZMA_OK: return {};
            case LZMA_MEM_ERROR: throw std::bad_alloc();
            default: return fail({}, SHF_E_FORMAT, "a damaged LZMA header");
        }
    }
    [[nodiscard]] bool exact() const override { return true; }
    Step decode(Bytes in, std::span<uint8_t> out) override {
        const size_t head = std::min(head_left_, in.size());
        head_left_ -= head;
        stream_.next_in = in.data() + head;
        stream_.avail_in = in.size() - head;
        stream_.next_out = out.data();
        stream_.avail_out = out.size();
        const lzma_ret result = lzma_code(&stream_, LZMA_RUN);
        if (result == LZMA_MEM_ERROR) throw std::bad_alloc();
        const Step step{in.size() - stream_.avail_in, out.size() - stream_.avail_out,
                        result == LZMA_STREAM_END ? Step::end : Step::more};
        if (result != LZMA_OK && result != LZMA_STREAM_END && result != LZMA_BUF_ERROR)
            return fail(step, SHF_E_FORMAT, "damaged LZMA data");
        return step;
    }

  private:
    static constexpr size_t head_size = 4, properties_size = 5, size_size = 8;

    const uint64_t size_;
    const uint64_t max_window_;
    size_t head_left_ = head_size + properties_size;
    lzma_stream stream_ = LZMA_STREAM_INIT;
};

std::unique_ptr<Codec> make_codec(const ZipEntry& entry, const Options& options) {
    switch (entry.method) {
        case zip_method::deflated: return std::make_unique<Deflated>();
        case zip_method::bzip2: return make_bzip2();
        case zip_method::lzma: return std::make_unique<Lzma>(entry, options);
        case zip_method::zstd: return make_zstd(options.max_window);
        case zip_method::xz: return make_xz(options.max_window);
        default:
            throw Error(SHF_E_UNSUPPORTED, "compression method " + std::to_string(entry.method),
                        "write the file again");
    }
}

}  // namespace

void decode_zip_method(const ZipEntry& entry, std::span<const uint8_t> in, std::span<uint8_t> out,
                       const Options& options, ZipScratch& scratch) {
    if (entry.method == zip_method::deflated) return inflate(in, out, scratch);
    ZipDecoder decoder(entry, options);
    for (ZipDecoder::Progress done{}; !done.ended;) {
        done = decoder.decode(in, 0, out);
        in = in.subspan(done.consumed);
        out = out.subspan(done.produced);
    }
}

void decode_zip_start(const ZipEntry& entry, std::span<const uint8_t> in, std::span<uint8_t> out,
                      const Options& options) {
    if (out.empty()) return;
    if (entry.method == zip_method::stored)
        return void(std::copy_n(in.begin(), out.size(), out.begin()));
    ZipDecoder decoder(entry, options);
    while (!out.empty()) {
        const auto done = decoder.decode(in, 0, out);
        in = in.subspan(done.consumed);
        out = out.subspan(done.produced);
    }
}

ZipDecoder::ZipDecoder(const ZipEntry& entry, const Options& options)
    : codec_(make_codec(entry, options)), size_(entry.size) {}

ZipDecoder::Progress ZipDecoder::decode(std::span<const uint8_t> in, uint64_t after,
                                        std::span<uint8_t> out) {
    const auto check = [this](const Step& step) {
        if (step.state == Step::failed) throw Error(codec_->fault(damage_help));
    };
    if (!begun_) {
        if (after > 0 && in.size() < frame_head) return {};
        check(codec_->begin(in.first(std::min(in.size(), frame_head))));
        begun_ = true;
    }
    // With all bytes made there must be nothing more: one byte shows it.
    uint8_t excess = 0;
    const uint64_t left = size_ - made_;
    std::span<uint8_t> room = left == 0 ? std::span<uint8_t>(&excess, 1) : out;
    room = room.first(std::min(room.size(), longest_span));
    if (room.empty()) return {};
    const Step step = codec_->decode(in.first(std::min(in.size(), longest_span)), room);
    check(step);
    if (step.produced > left) throw too_long(size_);
    made_ += step.produced;
    const uint64_t rest = in.size() - step.consumed + after;
    if (step.state == Step::end) {
        if (made_ < size_) throw too_short(made_, size_);
        if (rest > 0) throw left_over(rest);
    } else if ((after == 0 || in.size() >= piece) && step.consumed == 0 && step.produced == 0) {
        if (made_ < size_) throw too_short(made_, size_);
        throw damaged("the compressed data has no end");
    }
    return {step.consumed, step.produced, step.state == Step::end};
}

bool is_slow_zip_method(uint16_t method) {
    return method != zip_method::stored && method != zip_method::zstd;
}

// ---- ZipScratch ---------------------------------------------------------------------------------

ZipScratch::ZipScratch() = default;
ZipScratch::~ZipScratch() = default;

std::span<uint8_t> ZipScratch::bytes(size_t size) {
    if (size > capacity_) {
        buffer_.reset();
        capacity_ = 0;
        const size_t capacity = std::max<size_t>(size, 64 * 1024);
        buffer_ = std::make_unique_for_overwrite<uint8_t[]>(capacity);
        capacity_ = capacity;
    }
    return {buffer_.get(), size};
}

void ZipScratch::trim() noexcept {
    constexpr size_t largest_kept = 4 * 1024 * 1024;
    if (capacity_ <= largest_kept) return;
    buffer_.reset();
    capacity_ = 0;
}

libdeflate_decompressor* ZipScratch::inflate() {
    if (!inflate_) {
        inflate_.reset(libdeflate_alloc_decompressor());
        if (!inflate_) throw std::bad_alloc();
    }
    return inflate_.get();
}

void ZipScratch::Free::operator()(libdeflate_decompressor* inflate) const {
    libdeflate_free_decompressor(inflate);
}

}  // namespace shf
