// Decompresses the data of a ZIP entry in pieces.
#pragma once

#include "codec/codec.h"
#include "zip/zip_directory.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace shf {

class ZipDecoder {
  public:
    // So much input is enough for progress.
    static constexpr size_t piece = size_t{64} << 10;

    struct Progress {
        size_t consumed, produced;
        bool ended;  // all of the entry is there, and nothing follows
    };

    // Of a compressed entry. Throws Error(UNSUPPORTED) for an unknown method.
    ZipDecoder(const ZipEntry& entry, const Options& options);

    // Decompresses bytes of `in` into `out`; `after` more follow them. Without progress it waits
    // for more input or for room. With all bytes of the entry in earlier outputs, `out` may be
    // empty: then it looks for the end. Throws Error without member and offset, also when the data
    // ends early or continues after its size.
    Progress decode(std::span<const uint8_t> in, uint64_t after, std::span<uint8_t> out);

  private:
    const std::unique_ptr<Codec> codec_;
    const uint64_t size_;
    uint64_t made_ = 0;
    bool begun_ = false;
};

}  // namespace shf
