// Pages of Ogg (RFC 3533), which prove that a file is whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace shf {

struct OggPage {
    size_t at = 0;  // in the file
    bool continues = false, is_first = false, is_last = false;
    int64_t granule = 0;
    uint32_t serial = 0, number = 0;
    std::span<const uint8_t> lacing;  // the sizes of segments; one below 255 ends a packet
    std::span<const uint8_t> body;
};

// Throws Error(FORMAT): what is wrong at this byte of the file.
[[noreturn]] void refuse_ogg(size_t at, const std::string& cause);
[[noreturn]] void refuse_empty_ogg();

bool begins_with(std::span<const uint8_t> bytes, std::string_view text);

// What a codec has in the pages of its only stream, from front to back.
class OggStream {
  public:
    virtual ~OggStream() = default;
    OggStream() = default;
    OggStream(const OggStream&) = delete;
    OggStream& operator=(const OggStream&) = delete;

    void take(const OggPage& page);
    // After the last page, at the end of the file.
    void end(size_t at) const;

  protected:
    // The bytes of a packet that are in one segment of the page. `is_start`: they are its first
    // ones. `ends`: its last one is among them. `end_in_page`: where they end in the body of the
    // page. Throws Error(FORMAT), as the next two.
    virtual void take_packet(const OggPage& page, std::span<const uint8_t> bytes, bool is_start,
                             bool ends, size_t end_in_page) = 0;
    // After the packets of a page, `ended` of which ended on it.
    virtual void check_granule(const OggPage& page, size_t ended) = 0;
    // After the last page.
    virtual void check_end() const = 0;

    [[nodiscard]] uint32_t pages() const { return pages_; }  // that are read, with this one

  private:
    uint32_t serial_ = 0, pages_ = 0;
    bool ended_ = false, within_packet_ = false;
};

// Throws Error: FORMAT for a page that is cut, damaged, missing or one too many, a last page that
// is not marked as the last one, and what the stream refuses; UNSUPPORTED for several streams, and
// in a build that cannot compute the CRC of pages.
void check_ogg(std::span<const uint8_t> file, OggStream& stream);

}  // namespace shf
