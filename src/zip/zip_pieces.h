// Reads the data of ZIP entries in pieces, so that memory does not grow with them.
#pragma once

#include "zip/zip_decoder.h"
#include "zip/zip_entry.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace shf {

// One entry after another. One thread at a time.
class ZipPieces {
  public:
    // The references must outlive the result.
    ZipPieces(Source& source, const ZipDirectory& directory, const Options& options)
        : source_(source),
          directory_(directory),
          options_(options),
          reader_(source, directory, options) {}

    // The next read() starts with the first byte of this entry.
    void start(size_t index);
    // Moves the next bytes of the entry to `out`, which is not empty, and returns how many: at
    // least one, 0 at the end. Length and CRC hold when the last byte is there; those of a
    // compressed entry of up to 1 MiB with the first one. Throws Error with member and offset.
    size_t read(std::span<uint8_t> out);

  private:
    void open();
    size_t read_stored(std::span<uint8_t> out);
    size_t decode(std::span<uint8_t> out);
    void fetch(std::span<uint8_t> out);

    Source& source_;
    const ZipDirectory& directory_;
    const Options& options_;
    const ZipReader reader_;
    ZipScratch scratch_;
    size_t index_ = 0;
    bool open_ = false;
    uint64_t at_ = 0, stored_left_ = 0;  // of the stored bytes in the file
    uint64_t left_ = 0;                  // bytes of the entry that were not returned
    uint32_t crc_ = 0;                   // of the others
    std::vector<uint8_t> held_;          // a small entry, or input of the decoder
    size_t held_begin_ = 0;              // bytes of them that were used
    std::optional<ZipDecoder> decoder_;
};

}  // namespace shf
