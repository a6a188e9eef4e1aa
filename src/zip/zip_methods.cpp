// The compression methods of ZIP entries, each through its library.
#include "codec/codec.h"
#include "core/little_endian.h"
#include "core/options.h"
#include "zip/zip_entry.h"

#include <libdeflate.h>
#include <lzma.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>

namespace shf {

namespace {

enum Method : uint16_t { stored = 0, deflated = 8, bzip2 = 12, lzma = 14, zstd = 93, xz = 95 };

constexpr const char* damage_help = "copy the file again";

[[nodiscard]] Error damaged(std::string cause) {
    return Error(SHF_E_FORMAT, std::move(cause), damage_help);
}

Error too_short(size_t have, size_t size) {
    return damaged("the data ends after " + std::to_string(have) + " of " + plural(size, "byte"));
}

Error too_long(size_t size) {
    return damaged("the data continues after its " + plural(size, "byte"));
}

Error left_over(size_t bytes) {
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

// libdeflate takes streams as a whole only.
void inflate_start(std::span<const uint8_t> in, std::span<uint8_t> out) {
    z_stream stream{};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
    struct End {
        z_stream& stream;
        ~End() { inflateEnd(&stream); }
    } const end{stream};
    size_t made = 0;
    while (made < out.size()) {
        const size_t in_size = std::min(in.size(), longest_span);
        const size_t room = std::min(out.size() - made, longest_span);
        stream.next_in = const_cast<Bytef*>(in.data());  // not written to
        stream.avail_in = static_cast<uInt>(in_size);
        stream.next_out = out.data() + made;
        stream.avail_out = static_cast<uInt>(room);
        const int result = inflate(&stream, Z_NO_FLUSH);
        if (result == Z_MEM_ERROR) throw std::bad_alloc();
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
            throw damaged("damaged deflate data");
        in = in.subspan(in_size - stream.avail_in);
        made += room - stream.avail_out;
        // At the end of the stream, or of what there is of it.
        if (made < out.size() && result != Z_OK) throw too_short(made, out.size());
    }
}

// How much of an entry is wanted.
enum class Part : uint8_t {
    all,    // `out` has the size of the entry, and nothing may follow
    start,  // `out` has no more
};

// One frame of a codec that streams also use.
void decode_frame(Codec& codec, std::span<const uint8_t> in, std::span<uint8_t> out, Part part) {
    const auto check = [&codec](const Step& step) {
        if (step.state == Step::failed) throw Error(codec.fault(damage_help));
    };
    check(codec.begin(in.first(std::min(in.size(), frame_head))));
    size_t made = 0;
    uint8_t excess = 0;
    while (part == Part::all || made < out.size()) {
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
    if (part == Part::all && !in.empty()) throw left_over(in.size());
}

// LZMA1 without a container of its own (APPNOTE 5.8.8): version, length of the properties,
// properties, data; flag bit 1 says that an end mark follows the data. Without one only a decoder
// that knows the size can tell where the data ends, so liblzma gets the header of a .lzma file:
// properties and size, all ones when the mark is to tell it.
void decode_lzma(const ZipEntry& entry, std::span<const uint8_t> in, std::span<uint8_t> out,
                 const Options& options, Part part) {
    constexpr size_t head_size = 4, properties_size = 5, size_size = 8;
    if (in.size() < head_size + properties_size || le16(&in[2]) != properties_size)
        throw damaged("a damaged LZMA header");
    const uint32_t window = le32(&in[head_size + 1]);
    if (window > options.max_window)
        throw Error(SHF_E_LIMIT,
                    "the data needs a window of " + plural(window, "byte") + ", max_window is " +
                        std::to_string(options.max_window),
                    "raise max_window");
    const bool has_mark = (entry.flags & (1 << 1)) != 0;
    std::array<uint8_t, properties_size + size_size> header;
    std::copy_n(&in[head_size], properties_size, header.begin());
    uint64_t size = has_mark ? UINT64_MAX : entry.size;
    for (size_t i = properties_size; i < header.size(); ++i, size >>= 8) header[i] = size & 0xff;
    in = in.subspan(head_size + properties_size);

    lzma_stream stream = LZMA_STREAM_INIT;
    if (lzma_alone_decoder(&stream, UINT64_MAX) != LZMA_OK) throw std::bad_alloc();
    struct End {
        lzma_stream& stream;
        ~End() { lzma_end(&stream); }
    } const end{stream};
    uint8_t excess = 0;
    stream.next_in = header.data();
    stream.avail_in = header.size();
    stream.next_out = &excess;  // it wants some room even for the header
    stream.avail_out = 1;
    switch (lzma_code(&stream, LZMA_RUN)) {
        case LZMA_OK: break;
        case LZMA_MEM_ERROR: throw std::bad_alloc();
        default: throw damaged("a damaged LZMA header");
    }
    stream.next_in = in.data();
    stream.avail_in = in.size();
    stream.next_out = out.data();
    stream.avail_out = out.size();
    for (;;) {
        if (stream.total_out == out.size()) {
            if (part == Part::start) return;
            // All is there: now the end, and nothing but that.
            stream.next_out = &excess;
            stream.avail_out = 1;
        }
        const uint64_t before = stream.total_in + stream.total_out;
        const lzma_ret result = lzma_code(&stream, LZMA_RUN);
        if (stream.total_out > out.size()) throw too_long(out.size());
        if (result == LZMA_STREAM_END) break;
        if (result == LZMA_MEM_ERROR) throw std::bad_alloc();
        if (result != LZMA_OK && result != LZMA_BUF_ERROR) throw damaged("damaged LZMA data");
        if (stream.total_in + stream.total_out > before) continue;
        if (stream.total_out < out.size()) throw too_short(stream.total_out, out.size());
        throw damaged("LZMA data without its end");
    }
    if (stream.total_out < out.size()) throw too_short(stream.total_out, out.size());
    if (part == Part::all && stream.avail_in > 0) throw left_over(stream.avail_in);
}

void decode_method(const ZipEntry& entry, std::span<const uint8_t> in, std::span<uint8_t> out,
                   const Options& options, Part part) {
    switch (entry.method) {
        case bzip2: return decode_frame(*make_bzip2(), in, out, part);
        case lzma: return decode_lzma(entry, in, out, options, part);
        case zstd: return decode_frame(*make_zstd(options.max_window), in, out, part);
        case xz: return decode_frame(*make_xz(options.max_window), in, out, part);
        default:
            throw Error(SHF_E_UNSUPPORTED, "compression method " + std::to_string(entry.method),
                        "write the file again");
    }
}

}  // namespace

void decode_zip_method(const ZipEntry& entry, std::span<const uint8_t> in, std::span<uint8_t> out,
                       const Options& options, ZipScratch& scratch) {
    if (entry.method == deflated) return inflate(in, out, scratch);
    decode_method(entry, in, out, options, Part::all);
}

void decode_zip_start(const ZipEntry& entry, std::span<const uint8_t> in, std::span<uint8_t> out,
                      const Options& options) {
    if (out.empty()) return;
    if (entry.method == stored) return void(std::copy_n(in.begin(), out.size(), out.begin()));
    if (entry.method == deflated) return inflate_start(in, out);
    decode_method(entry, in, out, options, Part::start);
}

bool is_slow_zip_method(uint16_t method) {
    return method != stored && method != zstd;
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
