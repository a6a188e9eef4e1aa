// Reads the data of ZIP entries: local header, data, descriptor, decompression, CRC.
#pragma once

#include "zip/zip_directory.h"
#include "zip/zip_extra.h"

#include <cstddef>
#include <memory>
#include <span>

struct libdeflate_decompressor;

namespace shf {

// What a reading thread needs besides the result: a buffer for stored data and the state of a
// decompressor. Fresh memory is slow, so they are used again.
class ZipScratch {
  public:
    ZipScratch();
    ~ZipScratch();
    ZipScratch(const ZipScratch&) = delete;
    ZipScratch& operator=(const ZipScratch&) = delete;

    // At least `size` bytes, undefined; valid until the next call.
    std::span<uint8_t> bytes(size_t size);
    // Gives a large buffer back to the system.
    void trim() noexcept;
    // The decompressor for deflate.
    libdeflate_decompressor* inflate();

  private:
    std::unique_ptr<uint8_t[]> buffer_;
    size_t capacity_ = 0;
    struct Free {
        void operator()(libdeflate_decompressor* inflate) const;
    };
    std::unique_ptr<libdeflate_decompressor, Free> inflate_;
};

// Reads entries of one ZIP file. Any number of threads, each with a scratch of its own; nothing
// here changes, so a child process may use it.
class ZipReader {
  public:
    // The references must outlive the reader.
    ZipReader(Source& source, const ZipDirectory& directory, const Options& options)
        : source_(source), directory_(directory), options_(options) {}

    // Throws Error unless what the directory says of the entry allows to read it. Reads nothing.
    void check(size_t index) const;
    // Fills `out`, which has the entry's size, and checks what can be checked: local header against
    // directory (Z1), bounds (Z2), descriptor (Z5), length and CRC (Z4, Z11). Throws Error with
    // member and offset; `out` is then undefined. `compared` is what check_place() returned for
    // this entry: the local header is not read a second time. 0: it was not compared.
    void read(size_t index, std::span<uint8_t> out, ZipScratch& scratch, size_t compared = 0) const;
    // Throws Error unless the entry is what the directory says, where it says: compares the local
    // header, without the data. Of an entry that cannot be read for another reason nothing is
    // compared. A wrong name or offset in the directory moves a field out of its sample, where
    // nobody reads it.
    // `metadata`, which may be NULL, then gets what the local header says besides. Returns the
    // length of the local header, 0 when it was not compared.
    size_t check_place(size_t index, ZipMetadata* metadata = nullptr) const;
    // Where the stored bytes of an entry of any size are in the file, after the checks of its
    // headers and its descriptor. Throws Error.
    [[nodiscard]] uint64_t find_data(size_t index) const;
    // Bytes of the file among which the entry is, as the directory says; none where that cannot be.
    [[nodiscard]] ByteRange range(size_t index) const;
    // Adds member and offset to a fault of an entry; or says that the file is another one by now.
    [[noreturn]] void throw_named(size_t index, Fault fault) const;
    // Fills `out`, which is not larger than the entry, with its first bytes, after the checks of
    // its headers; `file` is the whole file in memory. Neither length nor CRC is checked.
    void read_start(size_t index, std::span<const uint8_t> file, std::span<uint8_t> out) const;
    // The bytes of a stored entry in `file`, which is the whole file in memory, after the same
    // checks.
    std::span<const uint8_t> view(size_t index, std::span<const uint8_t> file) const;

  private:
    void fetch(const ZipEntry& entry, std::string_view name, std::span<uint8_t> stored,
               size_t compared) const;
    void fetch_data(const ZipEntry& entry, std::span<uint8_t> stored, size_t header) const;
    [[nodiscard]] std::span<const uint8_t> stored_bytes(size_t index,
                                                        std::span<const uint8_t> file) const;
    void check_readable(size_t index) const;
    size_t check_header(size_t index, ZipMetadata* metadata = nullptr) const;
    template <typename Read>
    auto named(size_t index, const Read& read) const;

    Source& source_;
    const ZipDirectory& directory_;
    const Options& options_;
};

// Whether a method takes longer than fresh memory does, as is_slow_codec() says of codecs.
bool is_slow_zip_method(uint16_t method);

// Decompresses `in` with the method of a ZIP entry into exactly `out`. Throws Error (FORMAT,
// INTEGRITY, LIMIT, UNSUPPORTED, NOMEM) without member and offset.
void decode_zip_method(const ZipEntry& entry, std::span<const uint8_t> in, std::span<uint8_t> out,
                       const Options& options, ZipScratch& scratch);

// Decompresses only the first bytes, as many as `out` has, and looks at nothing behind them.
void decode_zip_start(const ZipEntry& entry, std::span<const uint8_t> in, std::span<uint8_t> out,
                      const Options& options);

}  // namespace shf
