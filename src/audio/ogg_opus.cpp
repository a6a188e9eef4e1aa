#include "audio/ogg_opus.h"

#include "audio/audio_end.h"
#include "audio/ogg_pages.h"
#include "core/little_endian.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shf {

namespace {

// The first packet, "OpusHead" (RFC 7845, 5.1): how many frames at 48 kHz are before the sound.
int64_t frames_before(std::span<const uint8_t> head, size_t at) {
    constexpr size_t fixed = 19, mapped = 21;
    if (head.size() < fixed || (head[8] & 0xf0) != 0) refuse_ogg(at, "a damaged header of Opus");
    const size_t channels = head[9];
    const uint8_t family = head[18];
    if (family > 1) unsupported_sound("Opus with channels that are no loudspeakers");
    bool sound = channels >= 1 && channels <= (family == 0 ? 2 : 8);
    if (sound && family == 1) {
        sound = head.size() == mapped + channels;
        if (sound) {
            const unsigned streams = head[19], coupled = head[20];
            sound = streams >= 1 && coupled <= streams && streams + coupled <= 255;
            for (const uint8_t channel : head.subspan(mapped))
                sound = sound && (channel == 255 || channel < streams + coupled);
        }
    } else {
        sound = sound && head.size() == fixed;
    }
    if (!sound) refuse_ogg(at, "a damaged header of Opus");
    return le16(&head[10]);
}

// The second one, "OpusTags" (RFC 7845, 5.2): texts with their lengths.
void check_tags(std::span<const uint8_t> tags, size_t at) {
    bool sound = begins_with(tags, "OpusTags");
    if (sound) tags = tags.subspan(8);
    const auto number = [&]() -> size_t {
        sound = sound && tags.size() >= 4;
        if (!sound) return 0;
        const uint32_t value = le32(tags.data());
        tags = tags.subspan(4);
        return value;
    };
    const auto skip_text = [&] {
        const size_t size = number();
        sound = sound && size <= tags.size();
        if (sound) tags = tags.subspan(size);
    };
    skip_text();
    for (size_t left = number(); sound && left > 0; --left) skip_text();
    if (!sound) refuse_ogg(at, "damaged tags of Opus");
}

class OpusStream final : public OggStream {
    void take_packet(const OggPage& page, std::span<const uint8_t> bytes, bool is_start, bool ends,
                     size_t end_in_page) override {
        if (is_start && packets_ >= headers && !take_frames(bytes))
            refuse_ogg(page.at, "a packet that Opus does not have on the page");
        if (packets_ < headers) header_.insert(header_.end(), bytes.begin(), bytes.end());
        if (!ends) return;
        ++packets_;
        frames_ += std::exchange(pending_, 0);
        if (packets_ <= headers) take_header(page, end_in_page);
    }

    // The start of a packet of sound, or all of it. Its frames count when it ends.
    bool take_frames(std::span<const uint8_t> packet) {
        const std::optional<int64_t> frames = opus_packet_frames(packet);
        pending_ = frames.value_or(0);
        return frames.has_value();
    }

    // Each of the two headers ends its page.
    void take_header(const OggPage& page, size_t end) {
        if (end != page.body.size() || (packets_ == 1 && pages() != 1))
            refuse_ogg(page.at, "headers that do not end with the page");
        if (packets_ == 1)
            skipped_ = frames_before(header_, page.at);
        else
            check_tags(header_, page.at);
        header_.clear();
    }

    // The position of a page is the number of frames up to the end of its last packet. Only the
    // last page may say less, where the sound ends within a packet (RFC 7845, 4).
    void check_granule(const OggPage& page, size_t ended) override {
        const int64_t before = std::exchange(frames_before_, frames_);
        if (ended == 0) {
            // A last page may have nothing but its mark.
            const bool is_mark = page.is_last && start_ && page.granule == last_granule_;
            if (page.granule != -1 && !is_mark)
                refuse_ogg(page.at, "a position without a packet on the page");
            return;
        }
        if (packets_ <= headers) {
            if (page.granule != 0) refuse_ogg(page.at, "a position before the sound on the page");
            return;
        }
        // A stream that was recorded in the middle does not begin at 0.
        constexpr int64_t highest = int64_t{1} << 62;
        if (page.granule < 0 || page.granule > highest)
            refuse_ogg(page.at, "no position on the page");
        if (!start_) start_ = page.is_last ? 0 : page.granule - frames_;
        const int64_t least = *start_ + before, most = *start_ + frames_;
        if (*start_ < 0 || page.granule > most || page.granule < (page.is_last ? least : most))
            refuse_ogg(page.at, "frames " + std::to_string(least) + " to " + std::to_string(most) +
                                    ", and the position " + std::to_string(page.granule) +
                                    " on the page");
        last_granule_ = page.granule;
    }

    void check_end() const override {
        if (!start_ || last_granule_ - *start_ <= skipped_) refuse_empty_ogg();
    }

    static constexpr size_t headers = 2;

    size_t packets_ = 0;            // that have ended
    std::vector<uint8_t> header_;   // the packet that is read, if it is one
    int64_t skipped_ = 0;           // frames at 48 kHz before the sound
    int64_t frames_ = 0;            // of the packets that have ended
    int64_t frames_before_ = 0;     // of those that have on earlier pages
    int64_t pending_ = 0;           // of the one that has not
    std::optional<int64_t> start_;  // the position of the first frame
    int64_t last_granule_ = 0;
};

}  // namespace

std::optional<int64_t> opus_packet_frames(std::span<const uint8_t> packet) {
    if (packet.empty()) return std::nullopt;
    const unsigned config = packet[0] >> 3;
    const int64_t size = config < 12   ? std::array{480, 960, 1920, 2880}[config % 4]
                         : config < 16 ? std::array{480, 960}[config % 2]
                                       : std::array{120, 240, 480, 960}[config % 4];
    int64_t count = (packet[0] & 3) == 0 ? 1 : 2;
    if ((packet[0] & 3) == 3) {
        if (packet.size() < 2) return std::nullopt;
        count = packet[1] & 63;
    }
    constexpr int64_t longest = 5760;  // 120 ms
    return count == 0 || count * size > longest ? std::nullopt : std::optional(count * size);
}

void check_ogg_opus(std::span<const uint8_t> file) {
    OpusStream stream;
    check_ogg(file, stream);
}

}  // namespace shf
