#include "audio/audio_file.h"

#include "audio/audio_end.h"
#include "audio/libsndfile.h"
#include "core/error.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace shf {

namespace {

constexpr const char* damaged_sound_help =
    "re-encode the sound, or skip its sample with on_error=skip_sample";

// A position in memory, which libsndfile moves.
struct Cursor {
    std::span<const uint8_t> bytes;
    sf_count_t at = 0;

    [[nodiscard]] sf_count_t size() const { return static_cast<sf_count_t>(bytes.size()); }
};

sf_count_t cursor_size(void* user) {
    return static_cast<const Cursor*>(user)->size();
}

sf_count_t cursor_seek(sf_count_t offset, int whence, void* user) {
    auto& cursor = *static_cast<Cursor*>(user);
    const sf_count_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? cursor.at : cursor.size();
    sf_count_t to = 0;
    if (__builtin_add_overflow(from, offset, &to) || to < 0) return -1;
    return cursor.at = to;
}

sf_count_t cursor_read(void* to, sf_count_t wanted, void* user) {
    auto& cursor = *static_cast<Cursor*>(user);
    const sf_count_t left = std::max<sf_count_t>(cursor.size() - cursor.at, 0);
    const sf_count_t count = std::clamp<sf_count_t>(wanted, 0, left);
    if (count > 0)
        std::memcpy(to, &cursor.bytes[static_cast<size_t>(cursor.at)], static_cast<size_t>(count));
    cursor.at += count;
    return count;
}

sf_count_t cursor_write(const void* /*from*/, sf_count_t /*count*/, void* /*user*/) {
    return 0;
}

sf_count_t cursor_tell(void* user) {
    return static_cast<const Cursor*>(user)->at;
}

struct Close {
    void operator()(SNDFILE* file) const { libsndfile().close(file); }
};

// Whether libsndfile took the file for the format whose end was looked at.
bool is_in(AudioFormat format, int found) {
    switch (found & SF_FORMAT_TYPEMASK) {
        case SF_FORMAT_WAV:
        case SF_FORMAT_WAVEX:
        case SF_FORMAT_RF64: return format == AudioFormat::wav;
        case SF_FORMAT_FLAC: return format == AudioFormat::flac;
        case SF_FORMAT_MPEG: return format == AudioFormat::mp3;
        case SF_FORMAT_OGG:
            return format == AudioFormat::opus && (found & SF_FORMAT_SUBMASK) == SF_FORMAT_OPUS;
        default: return false;
    }
}

bool is_short(int format) {
    switch (format & SF_FORMAT_SUBMASK) {
        case SF_FORMAT_PCM_S8:
        case SF_FORMAT_PCM_U8:
        case SF_FORMAT_PCM_16: return true;
        default: return false;
    }
}

}  // namespace

struct AudioFile::Decoder {
    Cursor cursor;
    std::unique_ptr<SNDFILE, Close> file;
    bool is_seekable = false;

    void check(sf_count_t found, sf_count_t wanted, const char* what) const {
        if (const int error = libsndfile().error(file.get()); error != SF_ERR_NO_ERROR)
            throw Error(SHF_E_FORMAT,
                        std::string("a damaged sound: ") + libsndfile().error_number(error),
                        damaged_sound_help);
        if (found != wanted)
            throw Error(SHF_E_FORMAT,
                        "a damaged sound: " +
                            plural(static_cast<uint64_t>(std::max<sf_count_t>(found, 0)), what) +
                            " of " + std::to_string(wanted),
                        damaged_sound_help);
    }
};

AudioFile::AudioFile(std::span<const uint8_t> file) : decoder_(std::make_unique<Decoder>()) {
    const Libsndfile& library = libsndfile();
    if (file.empty()) throw Error(SHF_E_FORMAT, "a sound of 0 bytes", damaged_sound_help);
    const AudioFormat format = check_audio_end(file);
    decoder_->cursor.bytes = file;
    SF_VIRTUAL_IO callbacks{cursor_size, cursor_seek, cursor_read, cursor_write, cursor_tell};
    SF_INFO info{};
    decoder_->file.reset(library.open_virtual(&callbacks, SFM_READ, &info, &decoder_->cursor));
    // Why is in a variable of libsndfile that all threads share.
    if (!decoder_->file)
        throw Error(SHF_E_FORMAT, "a damaged sound: libsndfile finds none", damaged_sound_help);
    if (!is_in(format, info.format)) unsupported_sound("a sound within a file of another format");
    if (info.frames == 0) throw Error(SHF_E_FORMAT, "a sound of 0 frames", damaged_sound_help);
    // A stream of FLAC may leave its length out.
    if (info.frames < 0 || info.frames >= SF_COUNT_MAX / 2)
        unsupported_sound("a sound that does not say how long it is");
    if (info.channels < 1 || info.samplerate < 1)
        throw Error(SHF_E_FORMAT, "a sound without channels, or with a rate of 0",
                    damaged_sound_help);
    decoder_->is_seekable = info.seekable != 0;
    header_ = {.frames = static_cast<uint64_t>(info.frames),
               .channels = static_cast<uint32_t>(info.channels),
               .rate = static_cast<uint32_t>(info.samplerate),
               .fits_in_16_bits = is_short(info.format)};
}

AudioFile::~AudioFile() = default;

void AudioFile::seek(uint64_t frame) {
    const auto to = static_cast<sf_count_t>(frame);
    if (!decoder_->is_seekable)
        unsupported_sound("a crop of a sound whose encoding has only one start");
    decoder_->check(libsndfile().seek(decoder_->file.get(), to, SEEK_SET), to, "frame");
}

void AudioFile::read(std::span<float> numbers) {
    const auto frames = static_cast<sf_count_t>(numbers.size() / header_.channels);
    decoder_->check(libsndfile().readf_float(decoder_->file.get(), numbers.data(), frames), frames,
                    "frame");
}

void AudioFile::read(std::span<int16_t> numbers) {
    const auto frames = static_cast<sf_count_t>(numbers.size() / header_.channels);
    decoder_->check(libsndfile().readf_short(decoder_->file.get(), numbers.data(), frames), frames,
                    "frame");
}

const char* audio_library() {
    try {
        return libsndfile().version_string();
    } catch (const Error&) {  // this system has none
        return nullptr;
    }
}

}  // namespace shf
