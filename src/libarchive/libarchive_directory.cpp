#include "libarchive/libarchive_directory.h"

#include "core/opening.h"
#include "core/options.h"

#include <utility>

namespace shf {

LibarchiveDirectory::LibarchiveDirectory(Source& source, const Options& options,
                                         const Cancel& cancel) {
    LibarchiveReader reader(source, options, cancel);
    for (Member member; reader.next(member);) {
        Opening::check();
        entries_.push_back({.size = member.size,
                            .crc = reader.crc().value_or(UINT64_MAX),
                            .name_at = names_.size(),
                            .name_size = static_cast<uint32_t>(member.name.size()),
                            .kind = member.kind,
                            .flaw = reader.flaw()});
        names_.append(member.name);
        if (const uint64_t held = entries_.size() * sizeof(LibarchiveEntry) + names_.size();
            held > options.memory)
            throw Error(SHF_E_LIMIT,
                        "the names of " + plural(entries_.size(), "member") + " take " +
                            plural(held, "byte") +
                            ", more than memory=" + std::to_string(options.memory),
                        "raise memory");
    }
}

LibarchiveMembers::~LibarchiveMembers() {
    for (auto& place : idle_) delete place.load(std::memory_order_relaxed);
}

void LibarchiveMembers::check(size_t index) const {
    const LibarchiveEntry& entry = directory_.entry(index);
    std::optional<Fault> fault = refusal(entry.kind);
    if (!fault && entry.flaw != MemberFlaw::none) fault = fault_of(entry.flaw, entry.size);
    if (!fault && entry.size > options_.max_member)
        fault = Fault{.code = SHF_E_LIMIT,
                      .shard = {},
                      .member = {},
                      .cause = "a member of " + plural(entry.size, "byte") +
                               " is larger than max_member=" + std::to_string(options_.max_member),
                      .help = "raise max_member"};
    if (!fault) return;
    fault->member = escape(directory_.name(index));
    throw Error(std::move(*fault));
}

// The one of the idle readers that is least far before the member; NULL: none is.
std::unique_ptr<LibarchiveReader> LibarchiveMembers::take(size_t first) const {
    std::unique_ptr<LibarchiveReader> best;
    for (auto& place : idle_) {
        if (!place.load(std::memory_order_relaxed)) continue;
        std::unique_ptr<LibarchiveReader> other(place.exchange(nullptr, std::memory_order_acquire));
        if (other && other->found() <= first && (!best || best->found() < other->found()))
            std::swap(best, other);
        if (other) put_back(std::move(other));
    }
    return best;
}

void LibarchiveMembers::put_back(std::unique_ptr<LibarchiveReader> reader) const {
    for (auto& place : idle_) {
        LibarchiveReader* none = nullptr;
        if (!place.compare_exchange_strong(none, reader.get(), std::memory_order_release,
                                           std::memory_order_relaxed))
            continue;
        (void)reader.release();
        return;
    }
    // All places are taken: the one that is given up is as good as any other.
    reader.reset(idle_[0].exchange(reader.release(), std::memory_order_acq_rel));
}

LibarchiveMembers::Pass::Pass(const LibarchiveMembers& members, Source& source, size_t first,
                              bool keep)
    : members_(members), keep_(keep), reader_(keep ? members.take(first) : nullptr) {
    if (!reader_)
        reader_ = std::make_unique<LibarchiveReader>(source, members.options_, members.cancel_);
}

LibarchiveMembers::Pass::~Pass() {
    if (keep_ && reader_->can_continue()) members_.put_back(std::move(reader_));
}

void LibarchiveMembers::Pass::read(size_t index, std::span<uint8_t> out) {
    members_.check(index);
    try {
        walk_to(index);
        reader_->read_whole(out);
    } catch (const Error& error) {
        Fault fault = error.fault();
        fault.member = escape(members_.directory_.name(index));
        throw Error(std::move(fault));
    }
}

void LibarchiveMembers::Pass::walk_to(size_t index) {
    const LibarchiveEntry& entry = members_.directory_.entry(index);
    Member member{};
    bool found = true;
    while (found && reader_->found() <= index) found = reader_->next(member);
    if (!found || member.kind != entry.kind || member.size != entry.size ||
        member.name != members_.directory_.name(index))
        throw Error(SHF_E_CHANGED, "the file changed: this member is no longer where it was",
                    "let no program write to archives that are in use; open it again");
}

}  // namespace shf
