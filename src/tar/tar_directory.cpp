#include "tar/tar_directory.h"

#include "core/options.h"
#include "tar/tar_listing.h"

#include <utility>

namespace shf {

TarDirectory::TarDirectory(Source& source, const Options& options, const Cancel& cancel) {
    Stats stats;
    TarListing listing(source, options, cancel, stats);
    Member member;
    while (listing.next(member)) {
        entries_.push_back({.offset = member.header_offset,
                            .data_offset = member.data_offset,
                            .size = member.size,
                            .name_at = names_.size(),
                            .name_size = static_cast<uint32_t>(member.name.size()),
                            .kind = member.kind});
        names_.append(member.name);
        listing.skip(member);
    }
    listing.finish();
}

void TarReader::throw_named(size_t index, Fault fault) const {
    if (fault.offset == no_offset) fault.offset = directory_.entry(index).offset;
    fault.member = escape(directory_.name(index));
    throw Error(std::move(fault));
}

void TarReader::check(size_t index) const {
    const TarEntry& entry = directory_.entry(index);
    if (auto fault = refusal(entry.kind)) throw_named(index, std::move(*fault));
    if (entry.size > options_.max_member)
        throw_named(index, Fault{.code = SHF_E_LIMIT,
                                 .shard = {},
                                 .member = {},
                                 .cause = "a member of " + plural(entry.size, "byte") +
                                          " is larger than max_member=" +
                                          std::to_string(options_.max_member),
                                 .help = "raise max_member"});
}

void TarReader::read(size_t index, std::span<uint8_t> out) const {
    check(index);
    try {
        if (source_.read(directory_.entry(index).data_offset, out) < out.size())
            throw Error(SHF_E_TRUNCATED, "the file ends inside this member", "copy it again");
        if (source_.touched()) check_header(index);
    } catch (const Error& error) {
        throw_named(index, error.fault());
    }
}

std::span<const uint8_t> TarReader::view(size_t index, std::span<const uint8_t> file) const {
    const TarEntry& entry = directory_.entry(index);
    try {
        if (source_.touched()) check_header(index);
    } catch (const Error& error) {
        throw_named(index, error.fault());
    }
    return file.subspan(static_cast<size_t>(entry.data_offset), static_cast<size_t>(entry.size));
}

// The member is still where the directory has it: its headers say the same.
void TarReader::check_header(size_t index) const {
    const TarEntry& entry = directory_.entry(index);
    Stats stats;
    TarListing listing(source_, options_, cancel_, stats, entry.offset);
    Member member;
    bool same = false;
    try {
        same = listing.next(member) && entry.offset + member.data_offset == entry.data_offset &&
               member.size == entry.size && member.name == directory_.name(index);
    } catch (const Error&) {  // no header at all
    }
    if (!same)
        throw Error(SHF_E_CHANGED, "the file changed: this member is no longer where it was",
                    "let no program write to archives that are in use; open it again");
}

}  // namespace shf
