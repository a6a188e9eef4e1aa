// Data by the compression methods of ZIP, made by the libraries.
#pragma once

#include "filter_encoders.h"
#include "zip_builder.h"

#include <libdeflate.h>

#include <string>
#include <string_view>

namespace shf::test {

enum ZipMethod : uint16_t {
    zip_stored = 0,
    zip_deflate = 8,
    zip_bzip2 = 12,
    zip_lzma = 14,
    zip_zstd = 93,
    zip_xz = 95
};

inline std::string deflate(std::string_view data, int level = 6) {
    libdeflate_compressor* c = libdeflate_alloc_compressor(level);
    std::string out(libdeflate_deflate_compress_bound(c, data.size()), '\0');
    out.resize(libdeflate_deflate_compress(c, data.data(), data.size(), out.data(), out.size()));
    libdeflate_free_compressor(c);
    return out;
}

// Raw LZMA behind the header that ZIP gives it (APPNOTE 5.8.8).
inline std::string zip_lzma_data(std::string_view data, bool end_mark, uint32_t dictionary = 65536,
                                 uint32_t preset = 6) {
    lzma_options_lzma options;
    EXPECT_EQ(lzma_lzma_preset(&options, preset), 0);
    options.dict_size = dictionary;
    // The encoder of LZMA1 always writes an end mark, the other one only when it is told to.
    options.ext_flags = 0;
    lzma_set_ext_size(options, data.size());
    const lzma_filter filters[2] = {{end_mark ? LZMA_FILTER_LZMA1 : LZMA_FILTER_LZMA1EXT, &options},
                                    {LZMA_VLI_UNKNOWN, nullptr}};
    std::string out(data.size() * 2 + 10000, '\0');
    size_t size = 0;
    EXPECT_EQ(lzma_raw_buffer_encode(filters, nullptr, bytes_of(data), data.size(), bytes_of(out),
                                     &size, out.size()),
              LZMA_OK);
    out.resize(size);
    const auto packed = static_cast<char>((options.pb * 5 + options.lp) * 9 + options.lc);
    return "\x09\x04\x05\x00"s + packed + le32(dictionary) + out;
}

inline std::string pack(uint16_t method, std::string_view data) {
    switch (method) {
        case zip_deflate: return deflate(data);
        case zip_bzip2: return bzip2(data);
        case zip_lzma: return zip_lzma_data(data, true);
        case zip_zstd: return zstd(data);
        case zip_xz: return xz(data);
        default: return std::string(data);
    }
}

inline Entry packed_entry(std::string name, uint16_t method, std::string data) {
    Entry entry{.name = std::move(name), .data = std::move(data), .method = method};
    if (method != zip_stored) entry.packed = pack(method, entry.data);
    if (method == zip_lzma) entry.flags = lzma_end_bit;
    return entry;
}

}  // namespace shf::test
