#include "audio/ogg_vorbis.h"

#include "audio/ogg_pages.h"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace shf {

namespace {

// Three headers, the first one alone on its page; the sound begins on a page of its own.
constexpr std::array<std::string_view, 3> vorbis_headers = {"\1vorbis", "\3vorbis", "\5vorbis"};

class VorbisStream final : public OggStream {
  public:
    [[nodiscard]] const VorbisPositions& positions() const { return positions_; }

  private:
    void take_packet(const OggPage& page, std::span<const uint8_t> bytes, bool is_start, bool ends,
                     size_t end_in_page) override {
        if (is_start && packets_ < vorbis_headers.size() &&
            !begins_with(bytes, vorbis_headers[packets_]))
            refuse_ogg(page.at, "a damaged header of Vorbis on the page");
        packet_bytes_ += bytes.size();
        if (!ends) return;
        ++packets_;
        // One without bytes is none to the decoder.
        if (packets_ > vorbis_headers.size() && packet_bytes_ > 0) ++sounds_;
        packet_bytes_ = 0;
        const bool ends_page = packets_ == 1 || packets_ == vorbis_headers.size();
        if (ends_page && end_in_page != page.body.size())
            refuse_ogg(page.at, "headers that do not end with the page");
    }

    // The position of a page is that of the frame behind its last packet; that of the last page may
    // be less, where the sound ends within a packet.
    void check_granule(const OggPage& page, size_t ended) override {
        if (packets_ <= vorbis_headers.size()) {
            if (page.granule > 0) refuse_ogg(page.at, "a position before the sound on the page");
            return;
        }
        const bool is_mark = page.is_last && page.granule == last_granule_;
        if (ended == 0) {
            if (page.granule != -1 && !is_mark)
                refuse_ogg(page.at, "a position without a packet on the page");
            return;
        }
        if (page.granule < last_granule_)
            refuse_ogg(page.at, "the position " + std::to_string(page.granule) + " after " +
                                    std::to_string(last_granule_) + " on the page");
        last_granule_ = page.granule;
        positions_.end = static_cast<uint64_t>(page.granule);
        if (std::exchange(has_sound_, true)) {
            positions_.is_one_page = false;
            return;
        }
        positions_.first_packets = sounds_;
        positions_.first = positions_.end;
        positions_.is_one_page = true;
    }

    void check_end() const override {
        if (last_granule_ == 0) refuse_empty_ogg();
    }

    size_t packets_ = 0;  // that have ended
    size_t sounds_ = 0;   // of these, of sound
    size_t packet_bytes_ = 0;
    bool has_sound_ = false;
    VorbisPositions positions_;
    int64_t last_granule_ = 0;
};

}  // namespace

bool is_ogg_vorbis(std::span<const uint8_t> file) {
    constexpr size_t fixed = 27;
    if (file.size() <= fixed || !begins_with(file, "OggS")) return false;
    const size_t header = fixed + file[fixed - 1];
    return file.size() > header && begins_with(file.subspan(header), vorbis_headers[0]);
}

VorbisPositions check_ogg_vorbis(std::span<const uint8_t> file) {
    VorbisStream stream;
    check_ogg(file, stream);
    return stream.positions();
}

}  // namespace shf
