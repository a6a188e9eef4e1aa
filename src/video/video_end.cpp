#include "video/video_end.h"

#include "core/error.h"
#include "core/little_endian.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <optional>
#include <string_view>

namespace shf {

namespace {

constexpr const char* cut_video_help =
    "the file was not written to its end; write it again, or skip its sample with "
    "on_error=skip_sample";

class VideoBytes {
  public:
    explicit VideoBytes(std::span<const uint8_t> bytes) : bytes_(bytes) {}

    [[nodiscard]] size_t size() const { return bytes_.size(); }
    // Whether this text is at `at`, which may be past the end.
    [[nodiscard]] bool has(size_t at, std::string_view text) const {
        return at <= size() && size() - at >= text.size() && this->text(at, text.size()) == text;
    }
    [[nodiscard]] std::string_view text(size_t at, size_t count) const {
        return {reinterpret_cast<const char*>(&bytes_[at]), count};
    }
    // `count` bytes at `at`, which are there, the highest first.
    [[nodiscard]] uint64_t number(size_t at, size_t count) const {
        uint64_t value = 0;
        for (size_t i = 0; i < count; ++i) value = value << 8 | bytes_[at + i];
        return value;
    }
    [[nodiscard]] std::span<const uint8_t> rest(size_t at) const { return bytes_.subspan(at); }

  private:
    const std::span<const uint8_t> bytes_;
};

[[noreturn]] void cut_video(const std::string& what, uint64_t left, uint64_t promised) {
    throw Error(
        SHF_E_FORMAT,
        what + ": the file ends after " + plural(left, "byte") + " of " + std::to_string(promised),
        cut_video_help);
}

// How many samples (frames and sounds) the tables of an MP4 claim, of which FFmpeg makes an entry
// of its own for each: ISO 14496-12, 8.6 to 8.8.
class Mp4Claims {
  public:
    explicit Mp4Claims(const VideoBytes& file) : file_(file) {}

    // Looks for tables in a box that FFmpeg reads, wherever they are in it.
    void look(size_t begin, size_t end) {
        for (size_t at = begin; at + 16 <= end; ++at) {
            const std::string_view type = file_.text(at + 4, 4);
            // The letters with which these begin come first: it is done for each byte.
            if (type[0] != 's' && type[0] != 't' && type[0] != 'c' && type[0] != 'e') continue;
            if (type == "trak" || type == "traf") end_of_track();
            if (type == "cmov")
                throw Error(SHF_E_UNSUPPORTED, "MP4: a compressed header",
                            "write the video again, for example with ffmpeg -c copy");
            const uint64_t size = file_.number(at, 4);
            if (size < 16 || size > end - at) continue;  // no box
            look_at(type, at, static_cast<size_t>(size));
        }
        end_of_track();
    }

  private:
    void look_at(std::string_view type, size_t at, size_t size) {
        if (type == "stsz" && size >= 20) {
            const uint64_t count = file_.number(at + 16, 4);
            const bool has_table = file_.number(at + 12, 4) == 0;
            add(has_table ? std::min<uint64_t>(count, (size - 20) / 4) : count);
        } else if (type == "stz2" && size >= 20) {
            add(file_.number(at + 16, 4));
        } else if (type == "trun") {
            add(file_.number(at + 12, 4));
        } else if (type == "stco" || type == "co64") {
            const size_t entry = type == "stco" ? 4 : 8;
            chunks_ = std::max<uint64_t>(
                chunks_, std::min<uint64_t>(file_.number(at + 12, 4), (size - 16) / entry));
        } else if (type == "stsc") {
            chunk_table_ = at + 16;
            chunk_entries_ = std::min<uint64_t>(file_.number(at + 12, 4), (size - 16) / 12);
        } else if (type == "elst") {
            edits_ = std::max<uint64_t>(
                edits_, std::min<uint64_t>(file_.number(at + 12, 4), (size - 16) / 12));
        }
    }

    void add(uint64_t samples) {
        samples_ += samples;
        track_samples_ += samples;
        check();
    }
    // Each has a byte, as a rule many.
    void check() const {
        if (samples_ > file_.size() || chunk_samples_ > file_.size())
            throw Error(SHF_E_FORMAT,
                        "MP4: tables of " + plural(std::max(samples_, chunk_samples_), "sample") +
                            " in a file of " + plural(file_.size(), "byte"),
                        "write the video again, or skip its sample with on_error=skip_sample");
    }

    void end_of_track() {
        for (uint64_t i = 0; i < chunk_entries_; ++i) {
            const size_t at = chunk_table_ + static_cast<size_t>(i) * 12;
            const uint64_t first = file_.number(at, 4);
            uint64_t next = i + 1 < chunk_entries_ ? file_.number(at + 12, 4) : chunks_ + 1;
            next = std::min(next, chunks_ + 1);
            if (next > first) chunk_samples_ += (next - first) * file_.number(at + 4, 4);
            check();
        }
        // Each edit may show all samples once more.
        constexpr uint64_t few = 4, most_shown = uint64_t{1} << 22;
        if (edits_ > few && edits_ * track_samples_ > most_shown)
            throw Error(SHF_E_LIMIT,
                        "MP4: a list of " + plural(edits_, "edit") + " of " +
                            plural(track_samples_, "sample"),
                        "write the video again without edits, for example with ffmpeg");
        track_samples_ = chunks_ = chunk_entries_ = edits_ = 0;
    }

    const VideoBytes& file_;
    uint64_t samples_ = 0, chunk_samples_ = 0;
    // Of the track that is being looked at.
    uint64_t track_samples_ = 0, chunks_ = 0, edits_ = 0, chunk_entries_ = 0;
    size_t chunk_table_ = 0;
};

// Boxes, one after another; the last one may have a size of 0, and end with the file.
void check_mp4(const VideoBytes& file) {
    Mp4Claims claims(file);
    bool has_header = false;
    for (size_t at = 0; at < file.size();) {
        const size_t left = file.size() - at;
        constexpr size_t short_header = 8, long_header = 16;
        if (left < short_header) {
            const std::span<const uint8_t> rest = file.rest(at);
            if (std::any_of(rest.begin(), rest.end(), [](uint8_t byte) { return byte != 0; }))
                cut_video("MP4: the header of a box", left, short_header);
            break;
        }
        uint64_t size = file.number(at, 4);
        size_t header = short_header;
        if (size == 1) {
            if (left < long_header) cut_video("MP4: the header of a box", left, long_header);
            size = file.number(at + 8, 8);
            header = long_header;
        }
        const bool is_rest = size == 0;
        const std::string_view type = file.text(at + 4, 4);
        if (is_rest) size = left;
        const std::string name = "MP4: box \"" + escape(type) + '"';
        if (size < header)
            throw Error(SHF_E_FORMAT, name + " has a size of " + plural(size, "byte"),
                        cut_video_help);
        if (size > left) cut_video(name, left, size);
        has_header = has_header || type == "moov";
        if (type != "mdat") claims.look(at, at + static_cast<size_t>(size));
        at += static_cast<size_t>(size);
    }
    if (!has_header)
        throw Error(SHF_E_FORMAT, "MP4: it has no header (box \"moov\")", cut_video_help);
}

// Elements of EBML (RFC 8794): a number for its kind, one for its size, and data. All ones are a
// size that its writer did not know.
void check_matroska(const VideoBytes& file) {
    constexpr uint64_t segment = 0x18538067;
    size_t at = 0;
    const auto number = [&](bool keeps_marker) -> uint64_t {
        if (at == file.size()) cut_video("Matroska: the header of an element", 0, 1);
        // The first bit that is set says how many bytes the number has: eight at most.
        const auto first = static_cast<uint8_t>(file.number(at, 1));
        const auto length = static_cast<size_t>(std::countl_zero(first)) + 1;
        if (first == 0)
            throw Error(SHF_E_FORMAT, "Matroska: the header of an element is damaged",
                        cut_video_help);
        if (file.size() - at < length)
            cut_video("Matroska: the header of an element", file.size() - at, length);
        uint64_t value = file.number(at, length);
        at += length;
        if (keeps_marker) return value;
        const uint64_t ones = (uint64_t{1} << (7 * length)) - 1;
        value &= ones;
        return value == ones ? UINT64_MAX : value;
    };
    for (;;) {
        const uint64_t kind = number(true), size = number(false);
        const size_t left = file.size() - at;
        if (kind == segment && size == UINT64_MAX) return;
        if (size > left)
            cut_video(kind == segment ? "Matroska: its segment" : "Matroska: its header", left,
                      size);
        if (kind == segment) return;
        at += static_cast<size_t>(size);
    }
}

// FFmpeg takes memory for each text of a list "INFO", as much as the list has room for, before it
// reads the text. It looks for these lists in front of the frames and behind them: here they are
// found wherever they are.
void check_avi_texts(const VideoBytes& file) {
    constexpr size_t list_header = 8;  // "LIST" and a size, which counts the bytes from "INFO" on
    constexpr std::string_view kind = "INFO";
    const std::string_view all = file.text(0, file.size());
    for (size_t at = all.find(kind); at != all.npos; at = all.find(kind, at + kind.size())) {
        if (at < list_header || !file.has(at - list_header, "LIST")) continue;
        const uint64_t size = le32(&file.rest(at - 4)[0]);
        const size_t left = file.size() - at;
        if (size > left) cut_video("AVI: list \"INFO\"", left, size);
        if (size < kind.size())
            throw Error(SHF_E_FORMAT, "AVI: list \"INFO\" has a size of " + plural(size, "byte"),
                        cut_video_help);
    }
}

// Chunks "RIFF", the first one of the kind "AVI ", those of a large file of the kind "AVIX". A
// program that writes into a pipe leaves their size out.
void check_avi(const VideoBytes& file, std::span<const uint8_t> bytes) {
    constexpr size_t chunk_header = 8;
    for (size_t at = 0; file.has(at, "RIFF") && file.size() - at >= chunk_header;) {
        const uint64_t size = le32(&bytes[at + 4]);
        const size_t left = file.size() - at - chunk_header;
        if (size == 0 || size == 0xffffffff) return;
        if (size > left) cut_video("AVI: chunk \"RIFF\"", left, size);
        if (size + size % 2 > left) return;
        at += chunk_header + static_cast<size_t>(size + size % 2);
    }
}

}  // namespace

void bad_video(const std::string& cause) {
    throw Error(SHF_E_FORMAT, "a damaged video: " + cause,
                "write the video again, or skip its sample with on_error=skip_sample");
}

VideoFormat check_video_end(std::span<const uint8_t> file) {
    const VideoBytes bytes(file);
    if (file.empty()) throw Error(SHF_E_FORMAT, "a video of 0 bytes", cut_video_help);
    const std::optional<VideoFormat> format = video_format(file);
    if (format) {
        switch (*format) {
            case VideoFormat::mp4: check_mp4(bytes); break;
            case VideoFormat::matroska: check_matroska(bytes); break;
            case VideoFormat::avi:
                check_avi(bytes, file);
                check_avi_texts(bytes);
                break;
            case VideoFormat::ogg: break;
        }
        return *format;
    }
    throw Error(SHF_E_UNSUPPORTED, "not a video that is known: it is no MP4, Matroska, WebM or AVI",
                "convert the video to one of these, or take the field as bytes");
}

}  // namespace shf
