#include "sample/shard_format.h"

#include "codec/magic.h"
#include "codec/other_archive.h"
#include "core/options.h"
#include "tar/header_block.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

namespace shf {

namespace {

bool is_named_zip(std::string_view url) {
    constexpr std::string_view suffix = ".zip";
    const auto same_letter = [](char a, char b) {
        return a == b || (b >= 'A' && b <= 'Z' && a == b - 'A' + 'a');
    };
    return url.size() >= suffix.size() &&
           std::equal(suffix.begin(), suffix.end(), url.end() - suffix.size(), same_letter);
}

// POSIX.1-2017, pax, ustar interchange format: the field "magic".
bool has_tar_magic(std::span<const uint8_t> head) {
    constexpr size_t offset = 257;
    const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
    return text.substr(std::min(offset, text.size())).starts_with("ustar");
}

// Of which format these first bytes are the mark; nothing: of none.
std::optional<ShardFormat> format_of(std::span<const uint8_t> head) {
    const ShardFormat tar =
        codec_of_magic(head) ? ShardFormat::compressed_tar : ShardFormat::tar;  // as the filter
    // The first member of a tar may be called anything, "PK\3\4" too.
    if (head.size() == shard_head && parse_plain_header(head.data())) return tar;
    if (has_zip_magic(head)) return ShardFormat::zip;
    if (tar == ShardFormat::compressed_tar) return tar;
    if (has_tar_magic(head)) return ShardFormat::tar;
    if (other_archive(head) != OtherArchive::none) return ShardFormat::other;
    return std::nullopt;
}

}  // namespace

ShardFormat shard_format(Source& source, std::string_view url, const Options& options) {
    std::array<uint8_t, shard_head> start{};
    const auto head = std::span(start).first(source.read(0, start));
    if (const auto format = format_of(head)) return *format;
    if (other_archive(source) != OtherArchive::none) return ShardFormat::other;
    return shard_format(head, url, options);
}

ShardFormat shard_format(std::span<const uint8_t> head, std::string_view url,
                         const Options& options) {
    if (const auto format = format_of(head)) return *format;
    const bool may_be_zip = options.zip_prefix == Leniency::allow || is_named_zip(url);
    return may_be_zip ? ShardFormat::zip : ShardFormat::tar;
}

}  // namespace shf
