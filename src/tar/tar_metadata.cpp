#include "tar/tar_metadata.h"

#include "core/times.h"
#include "tar/header_block.h"

#include <algorithm>
#include <charconv>

namespace shf {

namespace {

// Fields of a header (POSIX.1-2017, ustar Interchange Format). v7 ends before the magic.
struct Field {
    size_t at, size;
};
constexpr Field mode_field{100, 8}, uid_field{108, 8}, gid_field{116, 8}, mtime_field{136, 12},
    link_field{157, 100}, magic_field{257, 5}, user_field{265, 32}, group_field{297, 32};
constexpr uint64_t permission_bits = 07777;

template <typename Number>
std::optional<Number> decimal(std::string_view text) {
    Number number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

std::optional<int64_t> checked_nanoseconds(int64_t seconds, int64_t nanoseconds = 0) {
    int64_t time = 0;
    if (__builtin_mul_overflow(seconds, second, &time) ||
        __builtin_add_overflow(time, nanoseconds, &time))
        return std::nullopt;
    return time;
}

// "-1.5": seconds with a fraction, of which nine digits count.
std::optional<int64_t> parse_time(std::string_view text) {
    const size_t dot = std::min(text.find('.'), text.size());
    const auto seconds = decimal<int64_t>(text.substr(0, dot));
    if (!seconds) return std::nullopt;
    std::string digits(text.substr(std::min(dot + 1, text.size())));
    digits.resize(9, '0');
    const auto fraction = decimal<uint32_t>(digits);
    if (!fraction) return std::nullopt;
    return checked_nanoseconds(*seconds, text.starts_with('-') ? -int64_t{*fraction} : *fraction);
}

// A time field may also be a negative number in base-256.
std::optional<int64_t> header_time(std::string_view text) {
    if (static_cast<unsigned char>(text[0]) == 0xff) {
        int64_t seconds = -1;
        for (const char c : text.substr(1)) {
            if (seconds < INT64_MIN / 256) return std::nullopt;
            seconds = seconds * 256 + static_cast<unsigned char>(c);
        }
        return checked_nanoseconds(seconds);
    }
    const auto seconds = parse_number(text);
    if (!seconds || *seconds > INT64_MAX) return std::nullopt;
    return checked_nanoseconds(static_cast<int64_t>(*seconds));
}

std::string_view raw(const TarMetadata& metadata, Field field) {
    return {reinterpret_cast<const char*>(metadata.header.data()) + field.at, field.size};
}

std::string_view text(const TarMetadata& metadata, Field field) {
    const std::string_view bytes = raw(metadata, field);
    return bytes.substr(0, bytes.find('\0'));
}

// Headers of v7 have no names of owners.
std::string_view name_of_owner(const TarMetadata& metadata, Field field) {
    return raw(metadata, magic_field) == "ustar" ? text(metadata, field) : std::string_view();
}

const std::optional<std::string>& first_of(const std::optional<std::string>& one,
                                           const std::optional<std::string>& other) {
    return one ? one : other;
}

}  // namespace

void PaxFields::take(std::string_view key, std::string_view value) {
    if (key == "uid") uid = value;
    if (key == "gid") gid = value;
    if (key == "mtime") mtime = value;
    if (key == "uname") user = value;
    if (key == "gname") group = value;
    if (key == "linkpath") link = value;
}

void TarMetadata::forget_member() {
    pax = {};
    long_link.clear();
}

void TarMetadata::take_header(std::span<const uint8_t, 512> block) {
    std::copy(block.begin(), block.end(), header.begin());
}

std::optional<uint64_t> TarMetadata::mode() const {
    const auto bits = parse_number(raw(*this, mode_field));
    return bits ? std::optional(*bits & permission_bits) : std::nullopt;
}

std::optional<uint64_t> TarMetadata::uid() const {
    const auto& text = first_of(pax.uid, global.uid);
    return text ? decimal<uint64_t>(*text) : parse_number(raw(*this, uid_field));
}

std::optional<uint64_t> TarMetadata::gid() const {
    const auto& text = first_of(pax.gid, global.gid);
    return text ? decimal<uint64_t>(*text) : parse_number(raw(*this, gid_field));
}

std::optional<int64_t> TarMetadata::mtime() const {
    const auto& text = first_of(pax.mtime, global.mtime);
    return text ? parse_time(*text) : header_time(raw(*this, mtime_field));
}

std::string_view TarMetadata::link() const {
    if (pax.link) return *pax.link;
    return long_link.empty() ? text(*this, link_field) : long_link;
}

std::string_view TarMetadata::user() const {
    const auto& text = first_of(pax.user, global.user);
    return text ? *text : name_of_owner(*this, user_field);
}

std::string_view TarMetadata::group() const {
    const auto& text = first_of(pax.group, global.group);
    return text ? *text : name_of_owner(*this, group_field);
}

}  // namespace shf
