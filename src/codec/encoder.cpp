#include "codec/encoder.h"

#include "codec/magic.h"
#include "core/error.h"

#include <bzlib.h>
#include <libdeflate.h>
#include <lz4frame.h>
#include <lzma.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <string>

namespace shf {

namespace {

struct Format {
    const char* name;
    size_t piece;    // small enough for several in memory, large enough to lose little
    uint64_t usual;  // level
    uint64_t highest;
};

// In the order of Compression. A piece of bzip2 fits into one of the blocks of level 9.
constexpr Format formats[] = {
    {"", 0, 0, 0},
    {"none", 0, 0, 0},
    {"gzip", size_t{1} << 20, 6, 12},
    {"bzip2", 890'000, 9, 9},
    {"xz", size_t{8} << 20, 6, 9},
    {"zstd", size_t{4} << 20, 3, 22},
    {"lz4", size_t{4} << 20, 1, 12},
};

const Format& format_of(Compression compression) {
    return formats[static_cast<size_t>(compression)];
}

[[noreturn]] void no_memory(Compression compression) {
    throw Error(SHF_E_NOMEM, std::string(format_of(compression).name) + ": no memory to compress",
                "lower compress_threads or level");
}

class GzipEncoder : public Encoder {
  public:
    explicit GzipEncoder(int level) : deflate_(libdeflate_alloc_compressor(level)) {
        if (!deflate_) no_memory(Compression::gzip);
    }
    void encode(std::span<const uint8_t> piece, std::vector<uint8_t>& out) override {
        out.resize(libdeflate_gzip_compress_bound(deflate_.get(), piece.size()));
        out.resize(libdeflate_gzip_compress(deflate_.get(), piece.data(), piece.size(), out.data(),
                                            out.size()));
    }

  private:
    struct Free {
        void operator()(libdeflate_compressor* deflate) const {
            libdeflate_free_compressor(deflate);
        }
    };
    std::unique_ptr<libdeflate_compressor, Free> deflate_;
};

class Bzip2Encoder : public Encoder {
  public:
    explicit Bzip2Encoder(int level) : level_(level) {}
    void encode(std::span<const uint8_t> piece, std::vector<uint8_t>& out) override {
        out.resize(piece.size() + piece.size() / 100 + 600);  // the bound of its manual, 3.5.1
        auto size = static_cast<unsigned>(out.size());
        // The input is not const in the API, and not written to.
        auto* in = const_cast<char*>(reinterpret_cast<const char*>(piece.data()));
        if (BZ2_bzBuffToBuffCompress(reinterpret_cast<char*>(out.data()), &size, in,
                                     static_cast<unsigned>(piece.size()), level_, 0, 0) != BZ_OK)
            no_memory(Compression::bzip2);
        out.resize(size);
    }

  private:
    const int level_;
};

class XzEncoder : public Encoder {
  public:
    explicit XzEncoder(uint32_t level) : level_(level) {}
    void encode(std::span<const uint8_t> piece, std::vector<uint8_t>& out) override {
        out.resize(lzma_stream_buffer_bound(piece.size()));
        size_t size = 0;
        if (lzma_easy_buffer_encode(level_, LZMA_CHECK_CRC64, nullptr, piece.data(), piece.size(),
                                    out.data(), &size, out.size()) != LZMA_OK)
            no_memory(Compression::xz);
        out.resize(size);
    }

  private:
    const uint32_t level_;
};

class ZstdEncoder : public Encoder {
  public:
    explicit ZstdEncoder(int level) : context_(ZSTD_createCCtx()) {
        if (!context_) no_memory(Compression::zstd);
        ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, level);
        ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
    }
    void encode(std::span<const uint8_t> piece, std::vector<uint8_t>& out) override {
        out.resize(ZSTD_compressBound(piece.size()));
        const size_t size =
            ZSTD_compress2(context_.get(), out.data(), out.size(), piece.data(), piece.size());
        if (ZSTD_isError(size) != 0) no_memory(Compression::zstd);
        out.resize(size);
    }

  private:
    struct Free {
        void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
    };
    std::unique_ptr<ZSTD_CCtx, Free> context_;
};

class Lz4Encoder : public Encoder {
  public:
    explicit Lz4Encoder(int level) {
        preferences_.frameInfo.blockSizeID = LZ4F_max4MB;
        preferences_.frameInfo.blockMode = LZ4F_blockIndependent;
        preferences_.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;
        preferences_.compressionLevel = level;
    }
    void encode(std::span<const uint8_t> piece, std::vector<uint8_t>& out) override {
        preferences_.frameInfo.contentSize = piece.size();
        out.resize(LZ4F_compressFrameBound(piece.size(), &preferences_));
        const size_t size =
            LZ4F_compressFrame(out.data(), out.size(), piece.data(), piece.size(), &preferences_);
        if (LZ4F_isError(size) != 0) no_memory(Compression::lz4);
        out.resize(size);
    }

  private:
    LZ4F_preferences_t preferences_ = {};
};

}  // namespace

Compression compression_of(std::string_view name) {
    const char* codec = codec_of_suffix(name);
    if (codec == nullptr) return Compression::none;
    const auto* format = std::find_if(std::begin(formats), std::end(formats), [&](const Format& f) {
        return std::string_view(f.name) == codec;
    });
    if (format == std::end(formats))
        throw Error(SHF_E_UNSUPPORTED, std::string(codec) + " is read, and not written",
                    "write .tar.gz, .tar.zst, .tar.xz, .tar.lz4 or .tar.bz2");
    return static_cast<Compression>(format - std::begin(formats));
}

const char* compression_name(Compression compression) {
    return format_of(compression).name;
}

size_t piece_size(Compression compression) {
    return format_of(compression).piece;
}

uint64_t highest_level(Compression compression) {
    return format_of(compression).highest;
}

std::unique_ptr<Encoder> make_encoder(Compression compression, uint64_t level) {
    const Format& format = format_of(compression);
    if (level > format.highest)
        throw Error(
            SHF_E_USAGE,
            "option level: " + std::string(format.name) + " has no level " + std::to_string(level),
            "give 1 to " + std::to_string(format.highest) + ", or 0 for the usual one");
    const int chosen = static_cast<int>(level == 0 ? format.usual : level);
    switch (compression) {
        case Compression::gzip: return std::make_unique<GzipEncoder>(chosen);
        case Compression::bzip2: return std::make_unique<Bzip2Encoder>(chosen);
        case Compression::xz: return std::make_unique<XzEncoder>(static_cast<uint32_t>(chosen));
        case Compression::zstd: return std::make_unique<ZstdEncoder>(chosen);
        case Compression::lz4: return std::make_unique<Lz4Encoder>(chosen);
        case Compression::automatic:
        case Compression::none: break;
    }
    throw Error(SHF_E_INTERNAL, "no encoder is needed");
}

}  // namespace shf
