#include "zip/zip_extra.h"

#include "core/checksum.h"
#include "core/little_endian.h"
#include "core/times.h"

#include <algorithm>
#include <chrono>

namespace shf {

namespace {

constexpr uint16_t zip64_extra = 0x0001, unicode_name_extra = 0x7075;
// Of Info-ZIP: extended timestamp, and owner with numbers of any width.
constexpr uint16_t time_extra = 0x5455, owner_extra = 0x7875;

// Takes the 64-bit values of the ZIP64 extra field (APPNOTE 4.5.3): those whose 32-bit field is
// all ones, in this order. Writers also give values that are not asked for; they must be the same.
ZipFault read_zip64(std::span<const uint8_t> extra, ZipSizes& sizes, ZipHeader header) {
    struct Slot {
        uint64_t* value;
        uint64_t sentinel;
        size_t width;
    };
    const Slot all_slots[] = {{&sizes.size, UINT32_MAX, 8},
                              {&sizes.stored_size, UINT32_MAX, 8},
                              {&sizes.offset, UINT32_MAX, 8},
                              {&sizes.disk, UINT16_MAX, 4}};
    const std::span<const Slot> slots(all_slots, header == ZipHeader::local ? 2 : 4);
    const auto value_at = [&](size_t at, size_t width) {
        return width == 8 ? le64(&extra[at]) : uint64_t{le32(&extra[at])};
    };
    size_t wanted = 0;
    for (const Slot& slot : slots) wanted += *slot.value == slot.sentinel ? slot.width : 0;
    if (extra.size() < wanted) return ZipFault::zip64_missing;
    // Two readings: only the values asked for, or all of them. Both must give the same.
    const bool all = extra.size() > wanted;
    size_t packed = 0, full = 0;
    for (const Slot& slot : slots) {
        const bool asked = *slot.value == slot.sentinel;
        uint64_t value = *slot.value;
        if (asked) {
            value = value_at(packed, slot.width);
            packed += slot.width;
        }
        if (all && full + slot.width <= extra.size()) {
            if (value_at(full, slot.width) != value) return ZipFault::zip64_disagrees;
            full += slot.width;
        }
        *slot.value = value;
    }
    return ZipFault::none;
}

// Whether the Info-ZIP Unicode path field (APPNOTE 4.6.9) counts and says another name, or one that
// is no text.
bool other_name(std::span<const uint8_t> extra, std::string_view name) {
    if (extra.size() < 5 || extra[0] != 1) return false;
    const std::span<const uint8_t> raw(reinterpret_cast<const uint8_t*>(name.data()), name.size());
    if (le32(&extra[1]) != crc32(raw)) return false;
    const auto unicode = extra.subspan(5);
    return !std::equal(unicode.begin(), unicode.end(), raw.begin(), raw.end()) || !is_utf8(name);
}

// APPNOTE 4.4.6: years from 1980 on. Nothing for a date that does not exist, as 0.
std::optional<int64_t> dos_time(uint16_t date, uint16_t time) {
    using namespace std::chrono;
    const year_month_day day(year(1980 + (date >> 9)), month(date >> 5 & 15u),
                             std::chrono::day(date & 31u));
    if (!day.ok()) return std::nullopt;
    const auto seconds = sys_days(day).time_since_epoch() + hours(time >> 11) +
                         minutes(time >> 5 & 63) + std::chrono::seconds(2 * (time & 31));
    return duration_cast<std::chrono::seconds>(seconds).count() * second;
}

// A number and its width in front of it; nothing when there is none of at most eight bytes. `bytes`
// continues with what follows.
std::optional<uint64_t> sized_number(std::span<const uint8_t>& bytes) {
    if (bytes.empty() || bytes[0] > 8 || bytes[0] >= bytes.size()) return std::nullopt;
    const size_t width = bytes[0];
    uint64_t number = 0;
    for (size_t i = width; i > 0; --i) number = number << 8 | bytes[i];
    bytes = bytes.subspan(1 + width);
    return number;
}

}  // namespace

ZipMetadata read_zip_metadata(std::span<const uint8_t> header) {
    ZipMetadata metadata;
    metadata.mtime = dos_time(le16(&header[12]), le16(&header[10]));
    auto extra = header.subspan(zip_local_size + le16(&header[26]));
    while (extra.size() >= 4 && extra.size() - 4 >= le16(&extra[2])) {
        auto body = extra.subspan(4, le16(&extra[2]));
        const uint16_t id = le16(extra.data());
        extra = extra.subspan(4 + body.size());
        if (id == time_extra && body.size() >= 5 && (body[0] & 1) != 0)
            metadata.mtime = static_cast<int32_t>(le32(&body[1])) * second;
        if (id == owner_extra && body.size() > 1 && body[0] == 1) {
            body = body.subspan(1);
            metadata.uid = sized_number(body);
            if (metadata.uid) metadata.gid = sized_number(body);
        }
    }
    return metadata;
}

ZipFault read_zip_extra(std::span<const uint8_t> extra, std::string_view name, ZipSizes& sizes,
                        ZipHeader header) {
    ZipFault fault = ZipFault::none;
    bool zip64 = false, renamed = false;
    while (extra.size() >= 4) {
        const uint16_t id = le16(extra.data());
        const size_t size = le16(&extra[2]);
        if (size > extra.size() - 4) return ZipFault::extra_field;
        const auto body = extra.subspan(4, size);
        if (id == zip64_extra) {
            if (zip64) return ZipFault::zip64_twice;
            zip64 = true;
            fault = read_zip64(body, sizes, header);
        } else if (id == unicode_name_extra && header == ZipHeader::central &&
                   other_name(body, name)) {
            renamed = true;
        }
        extra = extra.subspan(4 + size);
    }
    // Some writers align data with up to three zero bytes.
    if (std::any_of(extra.begin(), extra.end(), [](uint8_t byte) { return byte != 0; }))
        return ZipFault::extra_field;
    if (!zip64 && sizes.has_sentinel()) return ZipFault::zip64_missing;
    // Last, so that it hides no fault of the sizes.
    return fault == ZipFault::none && renamed ? ZipFault::unicode_name : fault;
}

}  // namespace shf
