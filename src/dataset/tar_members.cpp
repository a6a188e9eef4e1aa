#include "core/options.h"
#include "dataset/members.h"
#include "tar/tar_listing.h"

#include <limits>
#include <string>

namespace shf {

namespace {

class TarMembers final : public Members {
  public:
    TarMembers(Source& source, std::span<const uint8_t> memory, const Options& options,
               const Cancel& cancel)
        : source_(source),
          memory_(memory),
          options_(options),
          cancel_(cancel),
          max_member_(options.max_member) {
        Stats stats;
        TarListing walk(source, options, cancel, stats);
        Member member;
        while (walk.next(member)) {
            rows_.push_back({.offset = member.header_offset,
                             .data_offset = member.data_offset,
                             .size = member.size,
                             .name_at = names_.size(),
                             .name_size = static_cast<uint32_t>(member.name.size()),
                             .kind = member.kind});
            names_.append(member.name);
            walk.skip(member);
        }
        walk.finish();
    }

    [[nodiscard]] size_t count() const override { return rows_.size(); }
    [[nodiscard]] std::string_view name(size_t position) const override {
        return std::string_view(names_).substr(rows_[position].name_at, rows_[position].name_size);
    }
    [[nodiscard]] MemberInfo info(size_t position) const override {
        const Row& row = rows_[position];
        return {.size = row.size,
                .stored_size = row.size,
                .method = 0,
                .crc = std::numeric_limits<uint64_t>::max(),
                .offset = row.offset,
                .kind = row.kind};
    }
    void check(size_t position) const override { (void)readable(position); }
    void read(size_t position, std::span<uint8_t> out, ZipScratch& /*scratch*/) const override {
        const Row& row = readable(position);
        try {
            if (source_.read(row.data_offset, out) < out.size())
                throw Error(SHF_E_TRUNCATED, "the file ends inside this member", "copy it again");
            if (source_.touched()) check_header(position);
        } catch (const Error& error) {
            Fault fault = error.fault();
            throw named(position, fault);
        }
    }
    [[nodiscard]] std::span<const uint8_t> view(size_t position) const override {
        const Row& row = readable(position);
        if (!memory_.data())
            throw Error(SHF_E_UNSUPPORTED, "the bytes of this archive are not in memory",
                        "read them");
        return memory_.subspan(static_cast<size_t>(row.data_offset), static_cast<size_t>(row.size));
    }

  private:
    // The member is still where the listing found it: its headers say the same.
    void check_header(size_t position) const {
        const Row& row = rows_[position];
        Stats stats;
        TarListing walk(source_, options_, cancel_, stats, row.offset);
        Member member;
        bool same = false;
        try {
            same = walk.next(member) && row.offset + member.data_offset == row.data_offset &&
                   member.size == row.size && member.name == name(position);
        } catch (const Error&) {  // no header at all
        }
        if (!same)
            throw Error(SHF_E_CHANGED, "the file changed: this member is no longer where it was",
                        "let no program write to archives that are in use; open it again");
    }

    struct Row {
        uint64_t offset, data_offset, size;
        uint64_t name_at;  // in names_
        uint32_t name_size;
        MemberKind kind;
    };

    Error named(size_t position, Fault fault) const {
        if (fault.offset == no_offset) fault.offset = rows_[position].offset;
        fault.member = escape(name(position));
        return Error(std::move(fault));
    }

    [[nodiscard]] const Row& readable(size_t position) const {
        const Row& row = rows_[position];
        if (const auto fault = refusal(row.kind)) throw named(position, *fault);
        if (row.size > max_member_)
            throw named(position,
                        Fault{.code = SHF_E_LIMIT,
                              .shard = {},
                              .member = {},
                              .cause = "a member of " + plural(row.size, "byte") +
                                       " is larger than max_member=" + std::to_string(max_member_),
                              .help = "raise max_member"});
        return row;
    }

    Source& source_;
    const std::span<const uint8_t> memory_;
    const Options& options_;
    const Cancel& cancel_;
    const uint64_t max_member_;
    std::vector<Row> rows_;
    std::string names_;
};

}  // namespace

std::unique_ptr<Members> tar_members(Source& source, std::span<const uint8_t> memory,
                                     const Options& options, const Cancel& cancel) {
    return std::make_unique<TarMembers>(source, memory, options, cancel);
}

}  // namespace shf
