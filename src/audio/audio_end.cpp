#include "audio/audio_end.h"

#include "audio/ogg_opus.h"
#include "core/error.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace shf {

namespace {

constexpr const char* cut_sound_help = "the file was not written to its end; write it again";

class AudioBytes {
  public:
    explicit AudioBytes(std::span<const uint8_t> bytes, bool big_endian = false)
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

// The chunk "data" has to be there as a whole. A program that writes into a pipe does not know its
// size, and writes 2^32 - 1. In RF64 the size is in the chunk "ds64", which comes first.
void check_wav(const AudioBytes& file, bool is_rf64) {
    constexpr size_t riff_header = 12, chunk_header = 8;
    constexpr uint64_t unknown = 0xffffffff;
    std::optional<uint64_t> large_size;
    for (size_t at = riff_header; at < file.size() && file.size() - at >= chunk_header;) {
        uint64_t size = file.number(at + 4, 4);
        const size_t left = file.size() - at - chunk_header;
        if (file.has(at, "ds64") && size >= 16 && left >= 16)
            large_size = file.number(at + chunk_header + 8, 8);
        if (file.has(at, "data")) {
            if (is_rf64 && !large_size) break;
            const bool is_known = is_rf64 || size != unknown;
            if (is_rf64) size = *large_size;
            if (is_known && size > left)
                throw Error(SHF_E_FORMAT,
                            "WAV: the file ends after " + plural(left, "byte") +
                                " of samples, its header says " + std::to_string(size),
                            cut_sound_help);
            return;
        }
        if (size + size % 2 > left) break;
        at += chunk_header + static_cast<size_t>(size + size % 2);
    }
    throw Error(SHF_E_FORMAT,
                is_rf64 ? "WAV: the file has no samples, or no size of them (chunk \"ds64\")"
                        : "WAV: the file has no samples (no chunk \"data\")",
                cut_sound_help);
}

// The first frame of MPEG audio (ISO 11172-3, 2.4.1) has no sound where an encoder put its header
// there, which says how many frames follow.
void check_mp3(const AudioBytes& file) {
    constexpr size_t tag_header = 10, frame_header = 4;
    size_t at = 0;
    while (file.has(at, "ID3") && file.size() - at >= tag_header) {  // ID3v2: 7 bits a byte
        uint64_t size = 0;
        for (size_t i = 6; i < tag_header; ++i) size = size << 7 | (file.number(at + i, 1) & 127);
        if (size > file.size() - at - tag_header) break;
        at += tag_header + static_cast<size_t>(size);
    }
    while (at < file.size() && file.number(at, 1) == 0) ++at;  // what some programs put behind it
    if (file.size() - at < frame_header || file.number(at, 1) != 0xff ||
        (file.number(at + 1, 1) & 0xe0) != 0xe0)
        unsupported_sound(
            "not a sound that is known: it is no WAV, FLAC, MP3, Ogg, MP4, Matroska or AVI");
    const bool is_mpeg_1 = (file.number(at + 1, 1) & 0x18) == 0x18;
    const bool is_mono = (file.number(at + 3, 1) & 0xc0) == 0xc0;
    const bool has_crc = (file.number(at + 1, 1) & 1) == 0;
    const size_t side = is_mpeg_1 ? (is_mono ? 17 : 32) : (is_mono ? 9 : 17);
    const size_t xing = at + frame_header + (has_crc ? 2 : 0) + side, vbri = at + frame_header + 32;
    if (!file.has(xing, "Xing") && !file.has(xing, "Info") && !file.has(vbri, "VBRI"))
        unsupported_sound("an MP3 that does not say how long it is (no header Xing, Info or VBRI)");
}

}  // namespace

void unsupported_sound(const char* what) {
    throw Error(SHF_E_UNSUPPORTED, what,
                "re-encode the sound as WAV, FLAC, MP3, Opus or AAC, or take the field as bytes");
}

AudioFormat check_audio_end(std::span<const uint8_t> file) {
    const AudioBytes bytes(file);
    const bool big_endian = bytes.has(0, "RIFX"), is_rf64 = bytes.has(0, "RF64");
    if ((big_endian || is_rf64 || bytes.has(0, "RIFF")) && bytes.has(8, "WAVE")) {
        check_wav(AudioBytes(file, big_endian), is_rf64);
        return AudioFormat::wav;
    }
    if (bytes.has(0, "fLaC")) return AudioFormat::flac;
    if (bytes.has(0, "OggS")) {
        constexpr size_t fixed = 27;
        if (file.size() <= fixed || !bytes.has(fixed + file[fixed - 1], "OpusHead"))
            unsupported_sound("Ogg with another codec than Opus and Vorbis");
        check_ogg_opus(file);
        return AudioFormat::opus;
    }
    check_mp3(bytes);
    return AudioFormat::mp3;
}

}  // namespace shf
