// The compression methods of ZIP entries, each through its library.
#include "core/options.h"
#include "format/codec.h"
#include "format/little_endian.h"
#include "format/zip_entry.h"

#include <libdeflate.h>
#include <lzma.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace shf {

namespace {

enum Method : uint16_t { stored = 0, deflated = 8, bzip2 = 12, lzma = 14, zstd = 93, xz = 95 };

[[nodiscard]] Error damaged(std::string cause) {
    return Error(SHF_E_FORMAT, std::move(cause), "copy the file again");
}

Error too_short(size_t have, size_t size) {
    return damaged("the data ends after " + std::to_string(have) + " of " + std::to_string(size) +
                   " bytes");
}

Error too_long(size_t size) {
    return damaged("the data goes on after its " + std::to_string(size) + " bytes");
}

Error left_over(size_t bytes) {
    return damaged(std::to_string(bytes) + " bytes after the compressed data");
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

// One frame of a codec that streams also use.
void decode_frame(Codec& codec, std::span<const uint8_t> in, std::span<uint8_t> out) {
    const auto check = [&codec](const Step& step) {
        if (step.state == Step::failed) throw Error(codec.fault());
    };
    check(codec.begin(in.first(std::min(in.size(), frame_head))));
    size_t made = 0;
    uint8_t excess = 0;
    for (;;) {
        // With `out` full there must be nothing more: one byte shows it.
        const std::span<uint8_t> room =
            made < out.size() ? out.subspan(made) : std::span<uint8_t>(&excess, 1);
        const Step step = codec.decode(in.first(std::min(in.size(), longest_span)),
                                       room.first(std::min(room.size(), longest_span)));
        check(step);
        if (made == out.size() && step.produced > 0) throw too_long(out.size());
        made += step.produced;
        in = in.subspan(step.consumed);
        if (step.state == Step::end) break;
        if (step.consumed == 0 && step.produced == 0) throw too_short(made, out.size());
    }
    if (made < out.size()) throw too_short(made, out.size());
    if (!in.empty()) throw left_over(in.size());
}

// LZMA1 without a container of its own (APPNOTE 5.8.8): version, length of the properties,
// properties, data; flag bit 1 says that an end mark follows the data.
void decode_lzma(const ZipEntry& entry, std::span<const uint8_t> in, std::span<uint8_t> out,
                 const Options& options) {
    constexpr size_t head_size = 4, properties_size = 5;
    if (in.size() < head_size + properties_size || le16(&in[2]) != properties_size)
        throw damaged("a damaged LZMA header");
    lzma_filter filters[2] = {{LZMA_FILTER_LZMA1, nullptr}, {LZMA_VLI_UNKNOWN, nullptr}};
    if (lzma_properties_decode(&filters[0], nullptr, &in[head_size], properties_size) != LZMA_OK)
        throw damaged("a damaged LZMA header");
    struct Free {
        void operator()(void* memory) const { std::free(memory); }
    };
    const std::unique_ptr<void, Free> owned(filters[0].options);
    const auto* properties = static_cast<const lzma_options_lzma*>(filters[0].options);
    if (properties->dict_size > options.max_window)
        throw Error(SHF_E_LIMIT,
                    "the data needs a window of " + std::to_string(properties->dict_size) +
                        " bytes, max_window is " + std::to_string(options.max_window),
                    "raise max_window");
    lzma_stream stream = LZMA_STREAM_INIT;
    switch (lzma_raw_decoder(&stream, filters)) {
        case LZMA_OK: break;
        case LZMA_MEM_ERROR: throw std::bad_alloc();
        default: throw damaged("a damaged LZMA header");
    }
    struct End {
        lzma_stream& stream;
        ~End() { lzma_end(&stream); }
    } const end{stream};
    in = in.subspan(head_size + properties_size);
    stream.next_in = in.data();
    stream.avail_in = in.size();
    stream.next_out = out.data();
    stream.avail_out = out.size();
    const bool has_mark = (entry.flags & (1 << 1)) != 0;
    lzma_ret result = LZMA_OK;
    while (result == LZMA_OK && stream.avail_out > 0) {
        const uint64_t before = stream.total_in + stream.total_out;
        result = lzma_code(&stream, LZMA_RUN);
        if (result == LZMA_OK && stream.total_in + stream.total_out == before)
            result = LZMA_BUF_ERROR;
    }
    uint8_t excess = 0;
    if (result == LZMA_OK) {
        // All is there: now the end mark, and nothing but that.
        stream.next_out = &excess;
        stream.avail_out = 1;
        result = lzma_code(&stream, LZMA_FINISH);
        if (stream.avail_out == 0) throw too_long(out.size());
        if (has_mark && result != LZMA_STREAM_END) throw damaged("LZMA data without its end mark");
        if (result == LZMA_DATA_ERROR) throw damaged("damaged LZMA data");
    } else if (result == LZMA_MEM_ERROR) {
        throw std::bad_alloc();
    } else if (result == LZMA_STREAM_END || result == LZMA_BUF_ERROR) {
        if (stream.avail_out > 0) throw too_short(out.size() - stream.avail_out, out.size());
    } else {
        throw damaged("damaged LZMA data");
    }
    if (stream.avail_in > 0) throw left_over(stream.avail_in);
}

}  // namespace

void decode_zip_method(const ZipEntry& entry, std::span<const uint8_t> in, std::span<uint8_t> out,
                       const Options& options, ZipScratch& scratch) {
    switch (entry.method) {
        case deflated: return inflate(in, out, scratch);
        case bzip2: return decode_frame(*make_bzip2(), in, out);
        case lzma: return decode_lzma(entry, in, out, options);
        case zstd: return decode_frame(*make_zstd(options.max_window), in, out);
        case xz: return decode_frame(*make_xz(options.max_window), in, out);
        default:
            throw Error(SHF_E_UNSUPPORTED, "compression method " + std::to_string(entry.method));
    }
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
