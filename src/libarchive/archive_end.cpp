#include "libarchive/archive_end.h"

#include "core/checksum.h"
#include "core/error.h"
#include "core/little_endian.h"
#include "io/read_ahead.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace shf {

namespace {

constexpr const char* one_volume = "write the archive as one volume";

Error cut(uint64_t size, const std::string& what) {
    return Error(SHF_E_TRUNCATED,
                 "the file of " + plural(size, "byte") + " ends before the archive does, " + what,
                 copy_again);
}

Error damaged(std::string cause, uint64_t at) {
    return Error(SHF_E_FORMAT, std::move(cause), copy_again, at);
}

// The sum, or 2^64 - 1, which lies behind every file.
uint64_t sum(uint64_t a, uint64_t b) {
    uint64_t result = 0;
    return __builtin_add_overflow(a, b, &result) ? UINT64_MAX : result;
}

// "7zFormat.txt", ArchiveProperties: the signature header.
ArchiveEnd end_of_7z(Source& source, uint64_t size) {
    std::array<uint8_t, 32> head{};
    if (source.read(0, head) < head.size()) throw cut(size, "inside its first header");
    if (crc32(std::span(head).subspan(12)) != le32(&head[8]))
        throw Error(SHF_E_INTEGRITY, "the CRC of the first header is wrong", copy_again, 0);
    const uint64_t end = sum(sum(head.size(), le64(&head[12])), le64(&head[20]));
    if (end > size) throw cut(size, "which has " + std::to_string(end));
    return {.end = end, .crcs = std::nullopt};
}

// ECMA-119, 8.4: the primary volume descriptor says how many blocks there are.
ArchiveEnd end_of_iso(Source& source, uint64_t size) {
    std::array<uint8_t, 2048> descriptor{};
    for (uint64_t at = iso_descriptor_at;; at += descriptor.size()) {
        if (source.read(at, descriptor) < descriptor.size())
            throw cut(size, "inside its descriptors");
        if (descriptor[0] == 255) throw damaged("an image without a primary volume", at);
        if (descriptor[0] == 1) break;
    }
    const uint64_t end = uint64_t{le32(&descriptor[80])} * le16(&descriptor[128]);
    if (end > size) throw cut(size, "which has " + std::to_string(end));
    return {.end = std::nullopt, .crcs = std::nullopt};  // any bytes may follow
}

// Reads the headers of RAR blocks, one after another.
class RarBlocks {
  public:
    RarBlocks(Source& source, uint64_t size, const Cancel& cancel)
        : ahead_(source), size_(size), cancel_(cancel) {}

    // The first `count` bytes at `at`.
    std::span<const uint8_t> read(uint64_t at, size_t count) {
        if (cancel_.requested()) cancel_.check();
        bytes_.resize(count);
        const std::span<uint8_t> whole(bytes_);
        if (at > size_ || count > size_ - at || ahead_.read_scattered(at, {&whole, 1}) < count)
            throw cut(size_, "which has no end block");
        return bytes_;
    }
    // Where the next block starts.
    uint64_t behind(uint64_t at, uint64_t header, uint64_t data) const {
        const uint64_t next = sum(sum(at, header), data);
        if (next > size_) throw cut(size_, "inside a block that ends at " + std::to_string(next));
        return next;
    }

  private:
    ReadAhead ahead_;
    const uint64_t size_;
    const Cancel& cancel_;
    std::vector<uint8_t> bytes_;
};

// "TechNote.txt" of RAR 4: CRC, type, flags, size, and the size of what follows the header.
ArchiveEnd end_of_rar4(Source& source, uint64_t size, const Cancel& cancel) {
    constexpr uint8_t mark = 0x72, main = 0x73, file = 0x74, service = 0x7a, end = 0x7b;
    constexpr unsigned volume = 0x0001, encrypted = 0x0080, large = 0x0100, has_data = 0x8000;
    constexpr size_t least = 7, crc_at = 16, crc_end = 20, high_size_at = 32;
    RarBlocks blocks(source, size, cancel);
    std::vector<uint64_t> crcs;
    for (uint64_t at = 0;;) {
        const auto head = blocks.read(at, least);
        const uint8_t type = head[2];
        const unsigned flags = le16(&head[3]);
        const uint16_t header = le16(&head[5]);
        if (type < mark || type > end || header < least) throw damaged("no block of RAR", at);
        if (type == end) return {.end = blocks.behind(at, header, 0), .crcs = std::move(crcs)};
        if (type == main && (flags & encrypted) != 0)
            throw Error(SHF_E_UNSUPPORTED, "encrypted headers", "decrypt it first", at);
        if (type == main && (flags & volume) != 0)
            throw Error(SHF_E_UNSUPPORTED, "a volume of a RAR archive in parts", one_volume, at);
        uint64_t data = 0;
        if (type == file || type == service || (type != mark && (flags & has_data) != 0)) {
            const bool is_large = (type == file || type == service) && (flags & large) != 0;
            const size_t wanted = is_large ? high_size_at + 4 : type == file ? crc_end : least + 4;
            if (header < wanted) throw damaged("a block of RAR without its sizes", at);
            const auto sizes = blocks.read(at, wanted);
            data = le32(&sizes[least]);
            if (is_large) data |= uint64_t{le32(&sizes[high_size_at])} << 32;
            if (type == file) crcs.push_back(le32(&sizes[crc_at]));
        }
        at = blocks.behind(at, header, data);
    }
}

// A number of RAR 5: seven bits in a byte, the lowest first. Nothing when it is not whole.
std::optional<uint64_t> take_number(std::span<const uint8_t>& bytes) {
    uint64_t number = 0;
    for (unsigned i = 0; i < 10 && i < bytes.size(); ++i) {
        number |= uint64_t{bytes[i] & 0x7fU} << (7 * i);
        if ((bytes[i] & 0x80) != 0) continue;
        bytes = bytes.subspan(i + 1);
        return number;
    }
    return std::nullopt;
}

// "RAR 5.0 archive format": CRC, size of the header, type, flags, size of the extra area, size of
// the data.
ArchiveEnd end_of_rar5(Source& source, uint64_t size, const Cancel& cancel) {
    constexpr uint64_t main = 1, file = 2, crypt = 4, end = 5, volume = 1;
    constexpr uint64_t has_extra = 1, has_data = 2, has_time = 2, has_crc = 4,
                       largest_header = 2 << 20;
    constexpr size_t signature = 8, crc_size = 4, most_digits = 3;
    RarBlocks blocks(source, size, cancel);
    std::vector<uint64_t> crcs;
    for (uint64_t at = signature;;) {
        // No header is shorter than this.
        const auto head = blocks.read(at, crc_size + most_digits);
        auto rest = head.subspan(crc_size);
        const auto header = take_number(rest);
        if (!header || *header < 2 || *header > largest_header)
            throw damaged("no block of RAR", at);
        const size_t digits = most_digits - rest.size();
        const size_t whole = crc_size + digits + static_cast<size_t>(*header);
        const auto bytes = blocks.read(at, whole);
        if (crc32(bytes.subspan(crc_size)) != le32(bytes.data()))
            throw Error(SHF_E_INTEGRITY, "the CRC of a header is wrong", copy_again, at);
        rest = bytes.subspan(crc_size + digits);
        const auto need = [&] {
            if (const auto number = take_number(rest)) return *number;
            throw damaged("a block of RAR that is too short", at);
        };
        const uint64_t type = need(), flags = need();
        if ((flags & has_extra) != 0) need();
        const uint64_t data = (flags & has_data) != 0 ? need() : 0;
        if (type == crypt)
            throw Error(SHF_E_UNSUPPORTED, "encrypted headers", "decrypt it first", at);
        if (type == main && (need() & volume) != 0)
            throw Error(SHF_E_UNSUPPORTED, "a volume of a RAR archive in parts", one_volume, at);
        if (type == file) {
            const uint64_t kind = need();  // flags of the file, its size, its attributes
            need();
            need();
            const size_t before = (kind & has_time) != 0 ? 4 : 0;
            const bool checked = (kind & has_crc) != 0;
            if (rest.size() < before + (checked ? 4 : 0))
                throw damaged("a block of RAR that is too short", at);
            crcs.push_back(checked ? le32(rest.data() + before) : no_crc);
        }
        at = blocks.behind(at, whole, data);
        if (type == end) return {.end = at, .crcs = std::move(crcs)};
    }
}

}  // namespace

ArchiveEnd find_archive_end(Source& source, OtherArchive format, const Cancel& cancel) {
    const uint64_t size = *source.size();
    switch (format) {
        case OtherArchive::seven_zip: return end_of_7z(source, size);
        case OtherArchive::iso9660: return end_of_iso(source, size);
        case OtherArchive::rar4: return end_of_rar4(source, size, cancel);
        case OtherArchive::rar5: return end_of_rar5(source, size, cancel);
        case OtherArchive::cpio:
        case OtherArchive::none: break;
    }
    return {};
}

}  // namespace shf
