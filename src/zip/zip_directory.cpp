#include "zip/zip_directory.h"

#include "core/little_endian.h"
#include "core/opening.h"
#include "core/options.h"
#include "zip/zip_extra.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace shf {

namespace {

constexpr size_t central_size = 46;
// The directory is read in pieces that stay in the cache while they are parsed. A whole entry, with
// the longest name, extra fields and comment, fits in one.
constexpr size_t directory_piece = 256 * 1024;
static_assert(directory_piece > central_size + 3 * 65535);

constexpr uint64_t largest = std::numeric_limits<int64_t>::max();
constexpr uint8_t newest_version = 63;
// Two bits for 258 bytes are the densest that deflate has: a length and a distance of one bit each
// (RFC 1951, 3.2.5).
constexpr uint64_t deflate_ratio = 1032;
constexpr uint64_t ratio_free = uint64_t{64} << 20;  // as for the streams of filters

bool is_known(uint16_t method) {
    using namespace zip_method;
    return method == stored || method == deflated || method == bzip2 || method == lzma ||
           method == zstd || method == xz;
}

// APPNOTE 4.4.2: 3 is Unix.
uint16_t mode_of(uint16_t made_by, uint32_t attributes) {
    return made_by >> 8 == 3 ? static_cast<uint16_t>(attributes >> 16) : 0;
}

MemberKind kind_of(std::string_view name, uint16_t mode) {
    if (name.ends_with('/')) return MemberKind::directory;
    // Only links: streaming writers leave the mode of a
    // FIFO on real data.
    if ((mode & 0170000) == 0120000) return MemberKind::symbolic_link;
    return MemberKind::file;
}

// Whether offset and size are worth comparing with those of other entries.
bool has_range(const ZipEntry& entry) {
    switch (entry.fault) {
        case ZipFault::extra_field:
        case ZipFault::zip64_missing:
        case ZipFault::zip64_twice:
        case ZipFault::zip64_disagrees:
        case ZipFault::too_large:
        case ZipFault::other_disk: return false;
        default: return true;
    }
}

}  // namespace

ZipFault fault_in(const ZipEntry& entry, std::string_view name, const Options& options) {
    if (entry.size > largest || entry.stored_size > largest || entry.offset > largest)
        return ZipFault::too_large;
    if (name.find('\0') != name.npos) return ZipFault::nul_in_name;
    // Bits 0, 6 and 13: encrypted, strongly encrypted, masked header (APPNOTE 4.4.4). 99: AES.
    if ((entry.flags & (1 << 0 | 1 << 6 | 1 << 13)) != 0 || entry.method == 99)
        return ZipFault::encrypted;
    if ((entry.flags & (1 << 5)) != 0) return ZipFault::patched;
    if (entry.version > newest_version) return ZipFault::version;
    if (!is_known(entry.method)) return ZipFault::method;
    if (entry.kind == MemberKind::directory && entry.size != 0) return ZipFault::directory_data;
    if (entry.method == zip_method::stored && entry.size != entry.stored_size)
        return ZipFault::sizes_differ;
    const uint64_t ratio = entry.method == zip_method::deflated ? deflate_ratio : options.max_ratio;
    const uint64_t free = entry.method == zip_method::deflated ? 0 : ratio_free;
    if (entry.method != zip_method::stored && entry.size > free &&
        entry.size / ratio > entry.stored_size)
        return ZipFault::ratio;
    return ZipFault::none;
}

ZipDirectory::ZipDirectory(Source& source, const Options& options) {
    const uint64_t size = *source.size();
    const ZipEnd end = find_zip_end(source, size, options);
    if (end.directory_size > options.memory)
        throw Error(SHF_E_LIMIT,
                    "the directory of " + plural(end.directory_size, "byte") +
                        " is larger than memory=" + std::to_string(options.memory),
                    "raise memory", end.directory);
    const auto miscounted = [&](uint64_t at) {
        return Error(SHF_E_FORMAT,
                     "the end record counts " + std::to_string(end.entries) +
                         " entries, the directory has " + std::to_string(entries_.size()) +
                         (entries_.size() < end.entries ? "" : " or more"),
                     "copy the file again", at);
    };
    // Only what the bytes of the directory can hold is reserved, regardless of the count.
    if (end.entries > end.directory_size / central_size) throw miscounted(end.directory);
    entries_.reserve(static_cast<size_t>(end.entries));
    names_.reserve(static_cast<size_t>(end.directory_size - end.entries * central_size));

    std::vector<uint8_t> piece(
        static_cast<size_t>(std::min<uint64_t>(directory_piece, end.directory_size)));
    // The first bytes were read with the end record. From where that stopped the source reads on
    // without another request.
    size_t have = 0;
    for (; end.entries > 0 && have < sizeof zip_central_magic; ++have)
        piece[have] = static_cast<uint8_t>(zip_central_magic >> 8 * have);
    uint64_t left = end.directory_size - have;  // not in memory yet
    const uint64_t directory_end = end.directory + end.directory_size;
    while (have > 0 || left > 0) {
        Opening::check();
        const auto more = static_cast<size_t>(std::min<uint64_t>(left, piece.size() - have));
        if (source.read(directory_end - left, std::span(piece).subspan(have, more)) < more)
            throw Error(SHF_E_TRUNCATED, "the file became shorter while it was read", shrunk_help);
        have += more;
        left -= more;
        size_t done = 0;
        while (done < have) {
            const uint64_t at = directory_end - left - (have - done);
            if (entries_.size() == end.entries) throw miscounted(at);
            const size_t used =
                parse_entry(std::span(piece).subspan(done, have - done), at, end.base, options);
            if (used == 0) {
                if (left > 0) break;  // the rest of it is in the next piece
                throw Error(SHF_E_FORMAT, "the last entry of the directory is cut off",
                            "copy the file again", at);
            }
            done += used;
        }
        std::copy(piece.begin() + static_cast<ptrdiff_t>(done),
                  piece.begin() + static_cast<ptrdiff_t>(have), piece.begin());
        have -= done;
    }
    if (entries_.size() != end.entries) throw miscounted(directory_end);
    find_limits(end.directory, size, options);
}

// Takes one entry from the start of `bytes`, which stand at `at` of the file. Returns its length, 0
// when it is not whole.
size_t ZipDirectory::parse_entry(std::span<const uint8_t> bytes, uint64_t at, uint64_t base,
                                 const Options& options) {
    const uint8_t* head = bytes.data();
    if (bytes.size() >= 4 && le32(head) != zip_central_magic)
        throw Error(SHF_E_FORMAT, "no entry of the directory where one should start",
                    "copy the file again", at);
    if (bytes.size() < central_size) return 0;
    const size_t name_size = le16(head + 28), extra_size = le16(head + 30);
    const size_t whole = central_size + name_size + extra_size + le16(head + 32);
    if (bytes.size() < whole) return 0;
    const std::string_view name(reinterpret_cast<const char*>(head) + central_size, name_size);

    ZipSizes sizes{le32(head + 24), le32(head + 20), le32(head + 42), le16(head + 34)};
    ZipFault fault = ZipFault::none;
    if (extra_size > 0 || sizes.has_sentinel())
        fault = read_zip_extra(bytes.subspan(central_size + name_size, extra_size), name, sizes);
    if (name_size > options.max_name)
        throw Error(SHF_E_LIMIT,
                    "a member name of " + plural(name_size, "byte") +
                        " is longer than max_name=" + std::to_string(options.max_name),
                    "raise max_name", at);
    const uint16_t mode = mode_of(le16(head + 4), le32(head + 38));
    ZipEntry entry{.offset = sizes.offset,
                   .limit = 0,
                   .stored_size = sizes.stored_size,
                   .size = sizes.size,
                   .name_at = names_.size(),
                   .crc = le32(head + 16),
                   .name_size = static_cast<uint16_t>(name_size),
                   .method = le16(head + 10),
                   .flags = le16(head + 8),
                   .mode = mode,
                   .version = head[6],
                   .kind = kind_of(name, mode),
                   .fault = fault};
    if (fault == ZipFault::none) entry.fault = fault_in(entry, name, options);
    if (entry.fault == ZipFault::none && sizes.disk != 0) entry.fault = ZipFault::other_disk;
    // A wrong sum only makes the entry one that overlaps.
    if (__builtin_add_overflow(entry.offset, base, &entry.offset)) entry.offset = UINT64_MAX;
    sorted_ = sorted_ && (entries_.empty() || entries_.back().offset < entry.offset);
    names_.append(name);
    entries_.push_back(entry);
    return whole;
}

// Bounds every entry by the next one, or by the end of the file where they may overlap, and marks
// those that reach over their bound (Z2). The length of the local extra field is not known yet: it
// is checked when the entry is read.
void ZipDirectory::find_limits(uint64_t directory, uint64_t file_size, const Options& options) {
    const auto least_end = [](const ZipEntry& entry) {
        uint64_t end = 0;
        const uint64_t header = zip_local_size + entry.name_size;
        if (__builtin_add_overflow(entry.offset, entry.stored_size, &end) ||
            __builtin_add_overflow(end, header, &end))
            return UINT64_MAX;
        return end;
    };
    const bool strict = options.zip_overlap != Leniency::allow;
    const uint64_t bound = strict ? directory : file_size;
    const auto mark = [](ZipEntry& entry) {
        if (entry.fault == ZipFault::none) entry.fault = ZipFault::overlap;
    };
    // Backwards, so that the start of the next entry is known.
    const std::vector<uint32_t> order = sorted_ ? std::vector<uint32_t>() : by_offset();
    const auto at = [&](size_t i) -> ZipEntry& { return entries_[sorted_ ? i : order[i]]; };
    uint64_t next = directory;
    for (size_t i = entries_.size(); i-- > 0;) {
        ZipEntry& entry = at(i);
        entry.limit = strict ? next : bound;
        if (has_range(entry)) next = std::min(entry.offset, directory);
    }
    // An entry that cannot be read is still at its offset.
    const uint64_t first = entries_.empty() ? directory : std::min(at(0).offset, directory);
    ZipEntry* reaching = nullptr;  // of the entries before, the one that goes farthest
    for (size_t i = 0; i < entries_.size(); ++i) {
        ZipEntry& entry = at(i);
        if (!has_range(entry)) continue;
        if (strict && reaching && entry.offset < least_end(*reaching)) {
            mark(entry);
            mark(*reaching);
        }
        if (least_end(entry) > bound) {
            // Its size is wrong for certain, and says nothing about the entries behind it.
            mark(entry);
            continue;
        }
        if (!reaching || least_end(entry) > least_end(*reaching)) reaching = &entry;
    }
    if (first > 0 && entries_.empty())
        throw Error(SHF_E_FORMAT,
                    "a ZIP file without entries after " + std::to_string(first) + " other bytes",
                    "copy the file again", 0);
    if (first > 0 && options.zip_prefix != Leniency::allow)
        throw Error(SHF_E_FORMAT, plural(first, "byte") + " before the first entry of the ZIP file",
                    "zip_prefix=allow accepts them, as in self-extracting files", 0);
}

std::vector<uint32_t> ZipDirectory::by_offset() const {
    std::vector<uint32_t> order(entries_.size());
    std::iota(order.begin(), order.end(), 0);
    if (!sorted_)
        std::stable_sort(order.begin(), order.end(), [this](uint32_t a, uint32_t b) {
            return entries_[a].offset < entries_[b].offset;
        });
    return order;
}

Error ZipDirectory::fault_of(size_t index) const {
    const ZipEntry& entry = entries_[index];
    const auto error = [&](int32_t code, std::string cause, std::string help = {}) {
        return Error(Fault{.code = code,
                           .offset = entry.offset,
                           .shard = {},
                           .member = escape(name(index)),
                           .cause = std::move(cause),
                           .help = std::move(help)});
    };
    const std::string again = "write the file again";
    switch (entry.fault) {
        case ZipFault::overlap:
            return error(SHF_E_FORMAT,
                         "the entry shares bytes with another one or with the directory",
                         "zip_overlap=allow reads it all the same");
        case ZipFault::nul_in_name: return error(SHF_E_FORMAT, "a NUL byte in the name", again);
        case ZipFault::extra_field:
            return error(SHF_E_FORMAT, "an extra field reaches over its area", again);
        case ZipFault::zip64_missing:
            return error(SHF_E_FORMAT, "the entry refers to ZIP64 values that are not there",
                         again);
        case ZipFault::zip64_twice: return error(SHF_E_FORMAT, "two ZIP64 extra fields", again);
        case ZipFault::zip64_disagrees:
            return error(SHF_E_AMBIGUOUS, "the ZIP64 values are not those of the entry", again);
        case ZipFault::too_large: return error(SHF_E_FORMAT, "a size or offset above 2^63", again);
        case ZipFault::sizes_differ:
            return error(SHF_E_FORMAT,
                         "a stored entry of " + plural(entry.size, "byte") + " that takes " +
                             std::to_string(entry.stored_size),
                         again);
        case ZipFault::directory_data:
            return error(SHF_E_FORMAT,
                         "a directory with " + plural(entry.size, "byte") + " of data", again);
        case ZipFault::unicode_name:
            return error(SHF_E_AMBIGUOUS, "the extra field 0x7075 gives the entry another name",
                         again);
        case ZipFault::ratio:
            if (entry.method != zip_method::deflated)
                return error(SHF_E_LIMIT,
                             plural(entry.stored_size, "byte") + " that would become " +
                                 std::to_string(entry.size),
                             "raise max_ratio");
            return error(SHF_E_FORMAT,
                         std::to_string(entry.stored_size) + " deflated bytes cannot become " +
                             std::to_string(entry.size),
                         again);
        case ZipFault::encrypted:
            return error(SHF_E_UNSUPPORTED, "an encrypted entry", "decrypt it first");
        case ZipFault::patched:
            return error(SHF_E_UNSUPPORTED, "an entry of patch data (flag bit 5)", again);
        case ZipFault::version:
            return error(SHF_E_UNSUPPORTED,
                         "an entry that needs version " + std::to_string(entry.version / 10) + "." +
                             std::to_string(entry.version % 10) + " of ZIP",
                         again);
        case ZipFault::method:
            return error(SHF_E_UNSUPPORTED, "compression method " + std::to_string(entry.method),
                         "write it stored, deflated (8), with bzip2 (12), LZMA (14), zstd (93) or "
                         "xz (95)");
        case ZipFault::other_disk:
            return error(SHF_E_UNSUPPORTED, "an entry on another part of a ZIP file in parts",
                         "join the parts, as with zip -s 0 PARTS --out WHOLE");
        case ZipFault::none: break;
    }
    return error(SHF_E_INTERNAL, "no fault");
}

}  // namespace shf
