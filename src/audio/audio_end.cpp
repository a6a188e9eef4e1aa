#include "audio/audio_end.h"

#include "core/error.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace shf {

namespace {

constexpr const char* truncated_help = "the file was not written to its end; write it again";

class Bytes {
  public:
    explicit Bytes(std::span<const uint8_t> bytes, bool big_endian = false)
        : bytes_(bytes), big_endian_(big_endian) {}

    [[nodiscard]] size_t size() const { return bytes_.size(); }
    // Whether this text is at `at`, which may be past the end.
    [[nodiscard]] bool has(size_t at, std::string_view text) const {
        if (at > bytes_.size() || bytes_.size() - at < text.size()) return false;
        return std::string_view(reinterpret_cast<const char*>(&bytes_[at]), text.size()) == text;
    }
    // `count` bytes at `at`, which are there.
    [[nodiscard]] uint64_t number(size_t at, size_t count) const {
        uint64_t value = 0;
        for (size_t i = 0; i < count; ++i)
            value = value << 8 | bytes_[at + (big_endian_ ? i : count - 1 - i)];
        return value;
    }

  private:
    const std::span<const uint8_t> bytes_;
    const bool big_endian_;
};

// The chunk "data" has to be there as a whole. A program that writes into a pipe does not know
// its size, and writes 0 or 2^32 - 1.
void check_wav(const Bytes& file) {
    constexpr size_t riff_header = 12, chunk_header = 8;
    constexpr uint64_t unknown = 0xffffffff;
    uint64_t large_size = unknown;  // of "data", in the chunk "ds64" of RF64
    for (size_t at = riff_header; at < file.size() && file.size() - at >= chunk_header;) {
        uint64_t size = file.number(at + 4, 4);
        const size_t left = file.size() - at - chunk_header;
        if (file.has(at, "ds64") && size >= 16 && left >= 16)
            large_size = file.number(at + chunk_header + 8, 8);
        if (file.has(at, "data")) {
            if (size == unknown) size = large_size;
            if (size != unknown && size > left)
                throw Error(SHF_E_FORMAT,
                            "WAV: the file ends after " + plural(left, "byte") +
                                " of samples, its header says " + std::to_string(size),
                            truncated_help);
            return;
        }
        if (size + size % 2 > left) break;
        at += chunk_header + static_cast<size_t>(size + size % 2);
    }
    throw Error(SHF_E_FORMAT, "WAV: the file has no samples (no chunk \"data\")", truncated_help);
}

// The last page, which has the flag for the end of the stream, reaches to the end of the file.
void check_ogg(const Bytes& file) {
    constexpr size_t page_header = 27;
    constexpr uint64_t last_page_flag = 4;
    const auto fail = [](const char* cause) {
        throw Error(SHF_E_FORMAT, std::string("Ogg: ") + cause, truncated_help);
    };
    bool ended = false;
    for (size_t at = 0; at < file.size();) {
        if (!file.has(at, "OggS")) {
            if (ended) return;  // something else behind the sound
            fail("a page does not begin where the one before it ends");
        }
        if (file.size() - at < page_header) fail("the file ends within a page");
        const auto pieces = static_cast<size_t>(file.number(at + 26, 1));
        size_t size = page_header + pieces;
        if (file.size() - at < size) fail("the file ends within a page");
        for (size_t i = 0; i < pieces; ++i)
            size += static_cast<size_t>(file.number(at + page_header + i, 1));
        if (file.size() - at < size) fail("the file ends within a page");
        ended = (file.number(at + 5, 1) & last_page_flag) != 0;
        at += size;
    }
    if (!ended) fail("the last page is missing");
}

}  // namespace

void check_audio_end(std::span<const uint8_t> file) {
    const Bytes bytes(file);
    const bool big_endian = bytes.has(0, "RIFX");
    if ((big_endian || bytes.has(0, "RIFF") || bytes.has(0, "RF64")) && bytes.has(8, "WAVE"))
        check_wav(Bytes(file, big_endian));
    else if (bytes.has(0, "OggS"))
        check_ogg(bytes);
}

}  // namespace shf
