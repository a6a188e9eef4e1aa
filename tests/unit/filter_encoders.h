// Compressed inputs for the tests of the filter, made by the encoders of the codec libraries.
#pragma once

#include <bzlib.h>
#include <gtest/gtest.h>
#include <lz4frame.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace shf::test {

// Words of a small vocabulary with some random bytes between them: compressible, but not a run.
inline std::string text(size_t size, uint32_t seed = 1) {
    static constexpr std::string_view words[] = {"tar ", "shard", "\n",    "0000", "sample.", "jpg",
                                                 "{\"",  "cls",   "label", "\": ", "feed "};
    std::minstd_rand random(seed);
    std::string out;
    while (out.size() < size) {
        out += words[random() % std::size(words)];
        if (random() % 8 == 0) out += static_cast<char>(random());
    }
    out.resize(size);
    return out;
}

inline std::string noise(size_t size, uint32_t seed = 1) {
    std::mt19937 random(seed);
    std::string out(size, '\0');
    for (char& c : out) c = static_cast<char>(random());
    return out;
}

inline uint8_t* bytes_of(std::string& s) {
    return reinterpret_cast<uint8_t*>(s.data());
}
inline const uint8_t* bytes_of(std::string_view s) {
    return reinterpret_cast<const uint8_t*>(s.data());
}

// `header` NULL: the shortest member header.
inline std::string gzip(std::string_view data, int level = 6, gz_header* header = nullptr) {
    z_stream z{};
    EXPECT_EQ(deflateInit2(&z, level, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY), Z_OK);
    if (header != nullptr) deflateSetHeader(&z, header);
    std::string out(deflateBound(&z, data.size()) + 70000, '\0');
    z.next_in = const_cast<Bytef*>(bytes_of(data));
    z.avail_in = static_cast<uInt>(data.size());
    z.next_out = bytes_of(out);
    z.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
    out.resize(z.total_out);
    deflateEnd(&z);
    return out;
}

inline std::string bzip2(std::string_view data, int level = 1) {
    std::string out(data.size() + data.size() / 50 + 1000, '\0');
    auto size = static_cast<unsigned>(out.size());
    EXPECT_EQ(BZ2_bzBuffToBuffCompress(out.data(), &size, const_cast<char*>(data.data()),
                                       static_cast<unsigned>(data.size()), level, 0, 0),
              BZ_OK);
    out.resize(size);
    return out;
}

inline std::string xz(std::string_view data, lzma_check check = LZMA_CHECK_CRC64,
                      uint32_t preset = 1) {
    std::string out(lzma_stream_buffer_bound(data.size()), '\0');
    size_t size = 0;
    EXPECT_EQ(lzma_easy_buffer_encode(preset, check, nullptr, bytes_of(data), data.size(),
                                      bytes_of(out), &size, out.size()),
              LZMA_OK);
    out.resize(size);
    return out;
}

// With a branch filter for x86, in blocks of `block` bytes (0: one), which do not say their size.
inline std::string xz_in_blocks(std::string_view data, size_t block, bool branches = false,
                                lzma_check check = LZMA_CHECK_CRC64) {
    lzma_options_lzma preset;
    EXPECT_FALSE(lzma_lzma_preset(&preset, 1));
    const lzma_filter lzma2 = {LZMA_FILTER_LZMA2, &preset}, x86 = {LZMA_FILTER_X86, nullptr},
                      end = {LZMA_VLI_UNKNOWN, nullptr};
    const lzma_filter with_branches[] = {x86, lzma2, end}, without[] = {lzma2, end};
    lzma_stream z = LZMA_STREAM_INIT;
    EXPECT_EQ(lzma_stream_encoder(&z, branches ? with_branches : without, check), LZMA_OK);
    std::string out(lzma_stream_buffer_bound(data.size()) + data.size() / 8 + 10000, '\0');
    z.next_out = bytes_of(out);
    z.avail_out = out.size();
    while (!data.empty()) {
        const size_t size = block == 0 ? data.size() : std::min(block, data.size());
        z.next_in = bytes_of(data);
        z.avail_in = size;
        EXPECT_EQ(lzma_code(&z, LZMA_FULL_FLUSH), LZMA_STREAM_END);
        data.remove_prefix(size);
    }
    EXPECT_EQ(lzma_code(&z, LZMA_FINISH), LZMA_STREAM_END);
    out.resize(z.total_out);
    lzma_end(&z);
    return out;
}

struct ZstdShape {
    int level = 3;
    bool checksum = true;
    int window_log = 0;        // 0: by level
    bool content_size = true;  // known in the header
    std::string_view dictionary = {};
};

inline std::string zstd(std::string_view data, const ZstdShape& shape = {}) {
    ZSTD_CCtx* c = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, shape.level);
    ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, shape.checksum ? 1 : 0);
    ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, shape.window_log);
    ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, shape.content_size ? 1 : 0);
    if (!shape.dictionary.empty())
        ZSTD_CCtx_loadDictionary(c, shape.dictionary.data(), shape.dictionary.size());
    std::string out(ZSTD_compressBound(data.size()) + 64, '\0');
    size_t size = 0;
    if (shape.content_size) {
        size = ZSTD_compress2(c, out.data(), out.size(), data.data(), data.size());
    } else {
        // In two steps, or libzstd would know the size and take a single segment.
        ZSTD_outBuffer to{out.data(), out.size(), 0};
        ZSTD_inBuffer from{data.data(), data.size(), 0};
        size = ZSTD_compressStream2(c, &to, &from, ZSTD_e_flush);
        if (!ZSTD_isError(size)) size = ZSTD_compressStream2(c, &to, &from, ZSTD_e_end);
        if (!ZSTD_isError(size)) size = to.pos;
    }
    EXPECT_FALSE(ZSTD_isError(size)) << ZSTD_getErrorName(size);
    ZSTD_freeCCtx(c);
    out.resize(size);
    return out;
}

struct Lz4Shape {
    bool linked = true;
    bool block_checks = false;
    bool content_check = true;
    bool content_size = false;
    LZ4F_blockSizeID_t block = LZ4F_max64KB;
};

inline std::string lz4(std::string_view data, const Lz4Shape& shape = {}) {
    LZ4F_preferences_t p{};
    p.frameInfo.blockMode = shape.linked ? LZ4F_blockLinked : LZ4F_blockIndependent;
    p.frameInfo.blockChecksumFlag =
        shape.block_checks ? LZ4F_blockChecksumEnabled : LZ4F_noBlockChecksum;
    p.frameInfo.contentChecksumFlag =
        shape.content_check ? LZ4F_contentChecksumEnabled : LZ4F_noContentChecksum;
    p.frameInfo.contentSize = shape.content_size ? data.size() : 0;
    p.frameInfo.blockSizeID = shape.block;
    std::string out(LZ4F_compressFrameBound(data.size(), &p), '\0');
    const size_t size = LZ4F_compressFrame(out.data(), out.size(), data.data(), data.size(), &p);
    EXPECT_FALSE(LZ4F_isError(size));
    out.resize(size);
    return out;
}

// A skippable frame of zstd and lz4 around `data`.
inline std::string skippable(std::string_view data) {
    std::string out = "\x5a\x2a\x4d\x18";
    for (unsigned shift = 0; shift < 32; shift += 8)
        out += static_cast<char>(static_cast<uint32_t>(data.size()) >> shift);
    return out.append(data);
}

// A member of lzip: header, an LZMA stream with its end mark, CRC and sizes.
inline std::string lzip(std::string_view data) {
    lzma_options_lzma preset;
    EXPECT_FALSE(lzma_lzma_preset(&preset, 1));
    preset.dict_size = 1 << 20;
    const lzma_filter filters[] = {{LZMA_FILTER_LZMA1, &preset}, {LZMA_VLI_UNKNOWN, nullptr}};
    std::string body(data.size() + data.size() / 4 + 1000, '\0');
    size_t size = 0;
    EXPECT_EQ(lzma_raw_buffer_encode(filters, nullptr, bytes_of(data), data.size(), bytes_of(body),
                                     &size, body.size()),
              LZMA_OK);
    std::string out = std::string("LZIP\1\x14", 6) + body.substr(0, size);
    const auto number = [&out](uint64_t value, unsigned bytes) {
        for (unsigned i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
    };
    number(lzma_crc32(bytes_of(data), data.size(), 0), 4);
    number(data.size(), 8);
    number(out.size() + 8, 8);
    return out;
}

inline constexpr const char* codecs[] = {"gzip", "bzip2", "xz", "zstd", "lz4", "lzip"};

inline std::string compress(std::string_view codec, std::string_view data) {
    if (codec == "gzip") return gzip(data);
    if (codec == "bzip2") return bzip2(data);
    if (codec == "xz") return xz(data);
    if (codec == "zstd") return zstd(data);
    if (codec == "lzip") return lzip(data);
    return lz4(data);
}

}  // namespace shf::test
