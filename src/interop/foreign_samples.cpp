#include "interop/foreign_samples.h"

#include "core/error.h"
#include "core/options.h"
#include "tar/tar_listing.h"

#include <limits>

namespace shf {

TarFiles::TarFiles(Source& source, const Options& options, const Cancel& cancel) {
    Stats stats;
    TarListing listing(source, options, cancel, stats);
    Member member;
    while (listing.next(member)) {
        end_ = end_of(member);
        if (member.kind == MemberKind::sparse || member.kind == MemberKind::multi_volume)
            throw Error(Fault{.code = SHF_E_UNSUPPORTED,
                              .offset = member.header_offset,
                              .shard = {},
                              .member = escape(member.name),
                              .cause = "a sparse member, or a piece of one",
                              .help = "write the shard without --sparse, as one volume"});
        if (member.kind == MemberKind::file) {
            add(member.name,
                {.header = member.header_offset, .data = member.data_offset, .size = member.size});
        }
        listing.skip(member);
    }
    listing.finish();
}

void TarFiles::add(std::string_view name, File file) {
    if (files_.size() == std::numeric_limits<uint32_t>::max())
        throw Error(SHF_E_LIMIT, "the shard has more than 4294967295 files", "split the shard");
    file.name_at = names_.size();
    file.name_size = static_cast<uint32_t>(name.size());
    files_.push_back(file);
    names_ += name;
}

MemberName split_dali_name(std::string_view name) {
    const size_t slash = name.rfind('/');
    const size_t dot = name.find('.', slash == name.npos ? 0 : slash + 1);
    const MemberName split = {
        .key = name.substr(0, dot == name.npos ? name.size() - 1 : dot),
        .field = dot == name.npos ? name : name.substr(dot + 1),
        .has_key = true,
    };
    return split.key.empty() || split.key.ends_with('/') ? MemberName{} : split;
}

MemberName split_energon_name(std::string_view name) {
    if (const MemberName usual = split_name(name); usual.has_key) return usual;
    const std::string_view first = name.substr(0, name.find('/'));
    if (first.size() >= 4 && first.starts_with("__") && first.ends_with("__")) return {};
    const size_t slash = name.rfind('/');
    if (slash == name.npos || !name.substr(slash + 1).starts_with('.')) return {};
    const std::string_view folders = name.substr(0, slash);
    const size_t before = folders.rfind('/');
    if (folders.find('.', before == folders.npos ? 0 : before) != folders.npos) return {};
    return {.key = name.substr(0, slash + 1), .field = name.substr(slash + 2), .has_key = true};
}

MemberName split_wids_name(std::string_view name) {
    const size_t last = name.rfind('.');
    if (last == name.npos) return {};
    const size_t slash = name.substr(0, last).rfind('/');
    const size_t dot = name.find('.', slash == name.npos ? 0 : slash + 1);
    return {.key = name.substr(0, dot), .field = name.substr(dot + 1), .has_key = true};
}

FileGroups::FileGroups(const TarFiles& files, SplitName split) {
    std::string_view key;
    for (size_t i = 0; i < files.size(); ++i) {
        const MemberName name = split(files.name(i));
        if (!name.has_key) continue;
        if (numbers_.empty() || name.key != key)
            first_.push_back(static_cast<uint32_t>(numbers_.size()));
        key = name.key;
        numbers_.push_back(static_cast<uint32_t>(i));
    }
    first_.push_back(static_cast<uint32_t>(numbers_.size()));
}

}  // namespace shf
