#include "zip/zip_entry.h"

#include "core/checksum.h"
#include "core/little_endian.h"
#include "core/options.h"
#include "zip/zip_extra.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace shf {

namespace {

constexpr uint32_t local_magic = 0x04034b50, descriptor_magic = 0x08074b50;
constexpr uint16_t has_descriptor = 1 << 3;
constexpr uint16_t aes = 99;  // in the place of the method
constexpr size_t longest_descriptor = 24;
// Room for a local header as most writers make it; longer ones are read once more.
constexpr size_t usual_header = 512;

std::string versus(const char* what, uint64_t local, uint64_t central) {
    return std::string("the local header has the ") + what + " " + std::to_string(local) +
           ", the directory has " + std::to_string(central);
}

Error ambiguous(std::string cause) {
    return Error(SHF_E_AMBIGUOUS, std::move(cause), "write the file again");
}

// Large buffers go back to the system in any case.
struct Trim {
    ZipScratch& scratch;
    ~Trim() { scratch.trim(); }
};

Error outside() {
    return Error(SHF_E_FORMAT, "the entry reaches into the next one or into the directory",
                 "zip_overlap=allow reads it all the same");
}

// The length of the local header that starts with `head`, name and extra fields included.
size_t header_length(std::span<const uint8_t> head) {
    if (le32(head.data()) != local_magic)
        throw Error(SHF_E_FORMAT, "no local header where the directory says",
                    "copy the file again");
    return zip_local_size + le16(&head[26]) + le16(&head[28]);
}

void check_crc(const ZipEntry& entry, std::span<const uint8_t> bytes) {
    if (crc32(bytes) != entry.crc)
        throw Error(SHF_E_INTEGRITY, "the CRC of the data does not match", "copy the file again");
}

// Z1: what both headers say must be the same, byte for byte. `header` is the whole local header
// with name and extra fields.
void check_local(const ZipEntry& entry, std::string_view name, std::span<const uint8_t> header) {
    const uint8_t* head = header.data();
    const uint16_t flags = le16(head + 6);
    if ((flags & (1 << 0 | 1 << 6 | 1 << 13)) != 0 || le16(head + 8) == aes)
        throw Error(SHF_E_UNSUPPORTED, "an encrypted entry", "decrypt it first");
    if (flags != entry.flags) throw ambiguous(versus("flags", flags, entry.flags));
    if (le16(head + 8) != entry.method)
        throw ambiguous(versus("method", le16(head + 8), entry.method));
    const std::string_view local_name(reinterpret_cast<const char*>(head) + zip_local_size,
                                      le16(head + 26));
    if (local_name != name) throw ambiguous("the local header has the name " + escape(local_name));
    ZipSizes sizes{le32(head + 22), le32(head + 18), 0, 0};
    const auto extra = header.subspan(zip_local_size + local_name.size());
    const bool plain = extra.empty() && !sizes.has_sentinel();
    switch (plain ? ZipFault::none : read_zip_extra(extra, {}, sizes, ZipHeader::local)) {
        case ZipFault::none: break;
        case ZipFault::zip64_disagrees:
            throw ambiguous("the ZIP64 values of the local header are not its others");
        case ZipFault::zip64_missing:
            throw Error(SHF_E_FORMAT, "the local header refers to ZIP64 values that are not there",
                        "write the file again");
        default:
            throw Error(SHF_E_FORMAT, "damaged extra fields in the local header",
                        "copy the file again");
    }
    // With a descriptor the writer did not know these yet: 0, or what it knew all the same.
    const auto same = [&](const char* what, uint64_t local, uint64_t central) {
        if (local != central && !((flags & has_descriptor) != 0 && local == 0))
            throw ambiguous(versus(what, local, central));
    };
    same("CRC", le32(head + 14), entry.crc);
    same("stored size", sizes.stored_size, entry.stored_size);
    same("size", sizes.size, entry.size);
}

// Z5: CRC and sizes once more behind the data, with or without signature, in 32 or 64 bits (APPNOTE
// 4.3.9). `tail` is what is between the data and the next entry, or the start of it.
void check_descriptor(const ZipEntry& entry, std::span<const uint8_t> tail) {
    bool cut = false;
    for (const size_t width : {size_t{4}, size_t{8}}) {
        if (width == 4 && std::max(entry.stored_size, entry.size) > UINT32_MAX) continue;
        for (const bool with_magic : {true, false}) {
            std::array<uint8_t, longest_descriptor> right;
            size_t size = 0;
            const auto put = [&](uint64_t value, size_t bytes) {
                for (; bytes > 0; --bytes, value >>= 8) right[size++] = value & 0xff;
            };
            if (with_magic) put(descriptor_magic, 4);
            put(entry.crc, 4);
            put(entry.stored_size, width);
            put(entry.size, width);
            if (!std::equal(right.begin(),
                            right.begin() + static_cast<ptrdiff_t>(std::min(size, tail.size())),
                            tail.begin()))
                continue;
            if (tail.size() >= size) return;
            cut = true;
        }
    }
    if (cut) throw outside();
    throw ambiguous("the data descriptor is not what the directory says");
}

}  // namespace

// Reads the stored bytes of an entry. As a rule in one call to the source: the room up to the next
// entry says how long the local header is.
void ZipReader::fetch(const ZipEntry& entry, std::string_view name, std::span<uint8_t> stored,
                      size_t compared) const {
    if (compared > 0) return fetch_data(entry, stored, compared);
    __builtin_prefetch(name.data());  // it is compared after the read
    const bool descriptor = (entry.flags & has_descriptor) != 0;
    const uint64_t least = zip_local_size + name.size() + stored.size();
    const uint64_t room = entry.limit > entry.offset ? entry.limit - entry.offset : 0;
    if (room < least) throw outside();
    const uint64_t usual_descriptor = std::min<uint64_t>(room - least, descriptor ? 16 : 0);
    const uint64_t gap = room - least - usual_descriptor;
    size_t header_size = zip_local_size + name.size() + (gap <= usual_header / 2 ? gap : 0);

    std::array<uint8_t, usual_header> usual;
    std::vector<uint8_t> long_header;
    std::array<uint8_t, longest_descriptor> tail;
    for (bool known = false;; known = true) {
        std::span<uint8_t> header;
        if (header_size <= usual.size()) {
            header = std::span(usual).first(header_size);
        } else {
            long_header.resize(header_size);
            header = long_header;
        }
        const uint64_t behind = room - std::min<uint64_t>(room, header_size + stored.size());
        const std::span<uint8_t> after =
            std::span(tail).first(descriptor ? std::min<uint64_t>(tail.size(), behind) : 0);
        const std::array parts{header, stored, after};
        if (source_.read_scattered(entry.offset, parts) <
            header.size() + stored.size() + after.size())
            throw Error(SHF_E_TRUNCATED, "the file ends inside the entry", "copy it again");
        const size_t real_size = header_length(header);
        if (real_size + stored.size() > room) throw outside();
        if (real_size == header_size) {
            check_local(entry, name, header);
            if (descriptor) check_descriptor(entry, after);
            return;
        }
        if (known)
            throw Error(SHF_E_CHANGED, "the file changed while it was read", "open it again");
        header_size = real_size;
    }
}

// Reads the stored bytes, and the descriptor, behind a header of this length.
void ZipReader::fetch_data(const ZipEntry& entry, std::span<uint8_t> stored, size_t header) const {
    const uint64_t room = entry.limit - entry.offset - header;  // check_header has compared them
    if (room < stored.size()) throw outside();
    std::array<uint8_t, longest_descriptor> tail;
    const std::span<uint8_t> after = std::span(tail).first(
        (entry.flags & has_descriptor) == 0
            ? 0
            : static_cast<size_t>(std::min<uint64_t>(tail.size(), room - stored.size())));
    if (source_.read_scattered(entry.offset + header, std::array{stored, after}) <
        stored.size() + after.size())
        throw Error(SHF_E_TRUNCATED, "the file ends inside the entry", "copy it again");
    if ((entry.flags & has_descriptor) != 0) check_descriptor(entry, after);
}

void ZipReader::check_readable(size_t index) const {
    const ZipEntry& entry = directory_.entry(index);
    if (entry.fault != ZipFault::none) throw directory_.fault_of(index);
    const auto limit = [&](const char* option, uint64_t bound, uint64_t size) {
        if (size > bound)
            throw Error(SHF_E_LIMIT,
                        "an entry of " + plural(size, "byte") + " is larger than " + option + "=" +
                            std::to_string(bound),
                        std::string("raise ") + option);
    };
    limit("max_member", options_.max_member, entry.size);
    if (entry.method != 0) limit("memory", options_.memory, entry.stored_size);
}

ByteRange ZipReader::range(size_t index) const {
    // Name and extra fields have lengths of 16 bits.
    constexpr uint64_t longest_header = zip_local_size + 2 * uint64_t{UINT16_MAX};
    const ZipEntry& entry = directory_.entry(index);
    const uint64_t room = entry.limit > entry.offset ? entry.limit - entry.offset : 0;
    if (room <= longest_header || room - longest_header <= entry.stored_size)
        return {entry.offset, room};
    return {entry.offset, entry.stored_size + longest_header};
}

void ZipReader::throw_named(size_t index, Fault fault) const {
    source_.verify();  // it may be another file by now: then that is why
    if (fault.offset == no_offset) fault.offset = directory_.entry(index).offset;
    fault.member = escape(directory_.name(index));
    throw Error(std::move(fault));
}

// Runs `read` and adds member and offset to its errors. Small enough to be inlined: it is around
// the reading of every entry.
template <typename Read>
auto ZipReader::named(size_t index, const Read& read) const {
    try {
        return read();
    } catch (const Error& error) {
        throw_named(index, error.fault());
    }
}

void ZipReader::check(size_t index) const {
    named(index, [&] {
        check_readable(index);
        const ZipEntry& entry = directory_.entry(index);
        const uint64_t room = entry.limit > entry.offset ? entry.limit - entry.offset : 0;
        const uint64_t header = zip_local_size + directory_.name(index).size();
        if (room < header || room - header < entry.stored_size) throw outside();
    });
}

size_t ZipReader::check_place(size_t index, ZipMetadata* metadata) const {
    switch (directory_.entry(index).fault) {
        case ZipFault::none: return check_header(index, metadata);
        case ZipFault::overlap:
        case ZipFault::nul_in_name:
        case ZipFault::unicode_name:
        case ZipFault::extra_field:
        case ZipFault::zip64_missing:
        case ZipFault::zip64_twice:
        case ZipFault::zip64_disagrees:
        case ZipFault::too_large: throw directory_.fault_of(index);
        default: return 0;  // in its place; what is wrong is said when the entry is read
    }
}

// Returns the length of the local header.
size_t ZipReader::check_header(size_t index, ZipMetadata* metadata) const {
    return named(index, [&] {
        const ZipEntry& entry = directory_.entry(index);
        const uint64_t room = entry.limit > entry.offset ? entry.limit - entry.offset : 0;
        std::array<uint8_t, usual_header> usual;
        std::vector<uint8_t> long_header;
        std::span<uint8_t> header =
            std::span(usual).first(static_cast<size_t>(std::min<uint64_t>(room, usual_header)));
        for (;;) {
            if (header.size() < zip_local_size) throw outside();
            if (source_.read_scattered(entry.offset, {&header, 1}) < header.size())
                throw Error(SHF_E_TRUNCATED, "the file ends inside the entry", "copy it again");
            const size_t real_size = header_length(header);
            if (real_size > room) throw outside();
            if (real_size <= header.size()) {
                header = header.first(real_size);
                check_local(entry, directory_.name(index), header);
                if (metadata) *metadata = read_zip_metadata(header);
                return real_size;
            }
            long_header.resize(real_size);
            header = long_header;
        }
    });
}

uint64_t ZipReader::find_data(size_t index) const {
    const ZipEntry& entry = directory_.entry(index);
    if (entry.fault != ZipFault::none) throw directory_.fault_of(index);
    const uint64_t header = check_header(index);
    named(index, [&] {
        const uint64_t room =
            entry.limit - entry.offset - header;  // check_header has compared them
        if (room < entry.stored_size) throw outside();
        if ((entry.flags & has_descriptor) == 0) return;
        std::array<uint8_t, longest_descriptor> tail;
        const std::span<uint8_t> after = std::span(tail).first(
            static_cast<size_t>(std::min<uint64_t>(tail.size(), room - entry.stored_size)));
        if (source_.read_scattered(entry.offset + header + entry.stored_size, {&after, 1}) <
            after.size())
            throw Error(SHF_E_TRUNCATED, "the file ends inside the entry", "copy it again");
        check_descriptor(entry, after);
    });
    return entry.offset + header;
}

void ZipReader::read(size_t index, std::span<uint8_t> out, ZipScratch& scratch,
                     size_t compared) const {
    named(index, [&] {
        check_readable(index);
        const ZipEntry& entry = directory_.entry(index);
        const bool stored = entry.method == 0;
        const Trim trim{scratch};
        const std::span<uint8_t> bytes =
            stored ? out : scratch.bytes(static_cast<size_t>(entry.stored_size));
        fetch(entry, directory_.name(index), bytes, compared);
        if (!stored) decode_zip_method(entry, bytes, out, options_, scratch);
        check_crc(entry, out);
    });
}

// Where an entry lies in a file that is in memory.
std::span<const uint8_t> ZipReader::stored_bytes(size_t index,
                                                 std::span<const uint8_t> file) const {
    const ZipEntry& entry = directory_.entry(index);
    if (entry.offset > entry.limit) throw outside();
    const auto rest = file.subspan(static_cast<size_t>(entry.offset),
                                   static_cast<size_t>(entry.limit - entry.offset));
    if (rest.size() < zip_local_size) throw outside();
    const size_t header_size = header_length(rest);
    if (rest.size() < header_size || rest.size() - header_size < entry.stored_size) throw outside();
    const auto bytes = rest.subspan(header_size, static_cast<size_t>(entry.stored_size));
    const auto after = rest.subspan(header_size + bytes.size());
    check_local(entry, directory_.name(index), rest.first(header_size));
    if ((entry.flags & has_descriptor) != 0)
        check_descriptor(entry, after.first(std::min(after.size(), longest_descriptor)));
    return bytes;
}

std::span<const uint8_t> ZipReader::view(size_t index, std::span<const uint8_t> file) const {
    return named(index, [&] {
        check_readable(index);
        const ZipEntry& entry = directory_.entry(index);
        if (entry.method != 0)
            throw Error(SHF_E_UNSUPPORTED, "the bytes of a compressed entry are not in memory",
                        "read it");
        const auto bytes = stored_bytes(index, file);
        check_crc(entry, bytes);
        return bytes;
    });
}

void ZipReader::read_start(size_t index, std::span<const uint8_t> file,
                           std::span<uint8_t> out) const {
    named(index, [&] {
        check_readable(index);
        decode_zip_start(directory_.entry(index), stored_bytes(index, file), out, options_);
    });
}

}  // namespace shf
