#include "audio/ogg_pages.h"

#include "audio/audio_end.h"
#include "core/checksum.h"
#include "core/error.h"
#include "core/little_endian.h"

#include <algorithm>
#include <array>

namespace shf {

namespace {

constexpr const char* ogg_help =
    "write or copy the file again, or skip its sample with on_error=skip_sample";

// The page at `at`.
OggPage read_page(std::span<const uint8_t> file, size_t at, size_t& end) {
    constexpr size_t fixed = 27, crc_at = 22;
    const std::span<const uint8_t> rest = file.subspan(at);
    if (!begins_with(rest, std::string_view("OggS").substr(0, std::min<size_t>(rest.size(), 4))))
        refuse_ogg(at, "no page");
    if (rest.size() < fixed || rest.size() - fixed < rest[fixed - 1])
        refuse_ogg(at, "the file ends in the page");
    if (rest[4] != 0 || rest[5] > 7) refuse_ogg(at, "a page of an unknown version");
    OggPage page{.at = at,
                 .continues = (rest[5] & 1) != 0,
                 .is_first = (rest[5] & 2) != 0,
                 .is_last = (rest[5] & 4) != 0,
                 .granule = static_cast<int64_t>(le64(&rest[6])),
                 .serial = le32(&rest[14]),
                 .number = le32(&rest[18]),
                 .lacing = rest.subspan(fixed, rest[fixed - 1]),
                 .body = {}};
    size_t size = 0;
    for (const uint8_t segment : page.lacing) size += segment;
    const size_t header = fixed + page.lacing.size();
    if (rest.size() - header < size) refuse_ogg(at, "the file ends in the page");
    page.body = rest.subspan(header, size);
    // Computed with zeros in its own place.
    constexpr std::array<uint8_t, 4> zeros{};
    uint32_t crc = crc_of_ogg(rest.first(crc_at));
    crc = crc_of_ogg(zeros, crc);
    crc = crc_of_ogg(rest.subspan(crc_at + 4, header + size - crc_at - 4), crc);
    if (crc != le32(&rest[crc_at])) refuse_ogg(at, "the CRC does not match of the page");
    end = at + header + size;
    return page;
}

}  // namespace

void refuse_ogg(size_t at, const std::string& cause) {
    throw Error(SHF_E_FORMAT, "Ogg: " + cause + " at byte " + std::to_string(at) + " of the field",
                ogg_help);
}

void refuse_empty_ogg() {
    throw Error(SHF_E_FORMAT, "a sound of 0 frames", ogg_help);
}

bool begins_with(std::span<const uint8_t> bytes, std::string_view text) {
    return bytes.size() >= text.size() && std::equal(text.begin(), text.end(), bytes.begin());
}

void OggStream::take(const OggPage& page) {
    if (ended_) {
        if (page.is_first) unsupported_sound("Ogg with several streams");
        refuse_ogg(page.at, "something behind the last page, a page");
    }
    if (pages_ == 0) {
        serial_ = page.serial;
        if (!page.is_first) refuse_ogg(page.at, "the first page is missing");
    } else if (page.is_first || page.serial != serial_) {
        unsupported_sound("Ogg with several streams");
    }
    if (page.number != pages_)
        refuse_ogg(page.at, "page " + std::to_string(pages_) + " is missing");
    if (page.continues != within_packet_)
        refuse_ogg(page.at, "the start or the end of a packet is missing");
    ++pages_;
    ended_ = page.is_last;
    size_t begin = 0, end = 0, ended = 0;
    for (const uint8_t segment : page.lacing) {
        end += segment;
        const bool is_start = !within_packet_, ends = segment != 255;
        take_packet(page, page.body.subspan(begin, end - begin), is_start, ends, end);
        within_packet_ = !ends;
        begin = end;
        ended += ends;
    }
    if (ended_ && within_packet_) refuse_ogg(page.at, "the last packet has no end on the page");
    check_granule(page, ended);
}

void OggStream::end(size_t at) const {
    if (!ended_) refuse_ogg(at, "the file ends, and no page is marked as the last one,");
    check_end();
}

void check_ogg(std::span<const uint8_t> file, OggStream& stream) {
    if (!have_crc_of_ogg) unsupported_sound("Ogg in a build without ISA-L, which checks its pages");
    size_t at = 0;
    while (at < file.size()) {
        const size_t begin = at;
        stream.take(read_page(file, begin, at));
    }
    stream.end(at);
}

}  // namespace shf
