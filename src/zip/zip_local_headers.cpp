// The entries of a ZIP file without its directory.
#include "core/little_endian.h"
#include "core/opening.h"
#include "core/options.h"
#include "zip/zip_directory.h"
#include "zip/zip_extra.h"

#include <utility>

namespace shf {

namespace {

constexpr uint32_t local_header_magic = 0x04034b50;
constexpr uint16_t sizes_behind_data = 1 << 3;
// A whole local header, with the longest name and extra fields, fits in two pieces.
constexpr size_t local_header_most = zip_local_size + size_t{2} * 65535;
constexpr size_t local_header_usual = 512;

}  // namespace

// Takes the entry of a whole local header at `at`. Returns where its data ends; 0: it is not to be
// trusted.
uint64_t ZipDirectory::take_local_header(std::span<const uint8_t> header, uint64_t at,
                                         const Options& options) {
    const uint8_t* head = header.data();
    const size_t name_size = le16(head + 26);
    const std::string_view name(reinterpret_cast<const char*>(head) + zip_local_size, name_size);
    ZipSizes sizes{le32(head + 22), le32(head + 18), 0, 0};
    const auto extra = header.subspan(zip_local_size + name_size);
    if ((!extra.empty() || sizes.has_sentinel()) &&
        read_zip_extra(extra, name, sizes, ZipHeader::local) != ZipFault::none)
        return 0;
    const uint16_t flags = le16(head + 6);
    uint64_t end = 0;
    if ((flags & sizes_behind_data) != 0 || name_size == 0 || name_size > options.max_name ||
        __builtin_add_overflow(at + header.size(), sizes.stored_size, &end) || end > INT64_MAX)
        return 0;
    ZipEntry entry{.offset = at,
                   .limit = end,
                   .stored_size = sizes.stored_size,
                   .size = sizes.size,
                   .name_at = names_.size(),
                   .crc = le32(head + 14),
                   .name_size = static_cast<uint16_t>(name_size),
                   .method = le16(head + 8),
                   .flags = flags,
                   .mode = 0,
                   .version = head[4],
                   .kind = name.ends_with('/') ? MemberKind::directory : MemberKind::file,
                   .fault = ZipFault::none};
    entry.fault = fault_in(entry, name, options);
    names_.append(name);
    entries_.push_back(entry);
    return end;
}

ZipDirectory ZipDirectory::of_local_headers(Source& source, const Options& options,
                                            std::optional<uint64_t>& broken_at) {
    ZipDirectory made;
    std::vector<uint8_t> bytes(local_header_most);
    const auto read = [&](uint64_t at, size_t size) {
        return std::span(std::as_const(bytes)).first(source.read(at, std::span(bytes).first(size)));
    };
    for (uint64_t at = 0;;) {
        Opening::check();
        auto seen = read(at, local_header_usual);
        const uint32_t magic = seen.size() < 4 ? 0 : le32(seen.data());
        if (magic == zip_central_magic) return made;
        uint64_t end = 0;
        if (magic == local_header_magic && seen.size() >= zip_local_size) {
            const size_t size = zip_local_size + le16(&seen[26]) + le16(&seen[28]);
            if (size > seen.size()) seen = read(at, size);
            if (size <= seen.size()) end = made.take_local_header(seen.first(size), at, options);
        }
        if (made.entries_.size() * sizeof(ZipEntry) + made.names_.size() > options.memory)
            throw Error(SHF_E_LIMIT,
                        "the entries take more than memory=" + std::to_string(options.memory),
                        "raise memory", at);
        if (end == 0) {
            broken_at = at;
            return made;
        }
        at = end;
    }
}

}  // namespace shf
