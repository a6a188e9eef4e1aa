#include "codec/filter.h"
#include "core/stats.h"
#include "member/member_walk.h"
#include "tar/tar_listing.h"
#include "tar/tar_metadata.h"

#include <utility>

namespace shf {

namespace {

class TarMemberWalk final : public MemberWalk {
  public:
    TarMemberWalk(std::unique_ptr<Sequential> input, const Source* source, const Options& options,
                  const Cancel& cancel)
        : listing_(open_filter(std::move(input), options, report_), source, options, cancel,
                   stats_) {
        listing_.keep_metadata(metadata_);
    }

    bool next() override {
        if (in_member_) listing_.skip(member_);
        in_member_ = false;
        if (!walked_ && listing_.next(member_)) return in_member_ = true;
        walked_ = true;
        listing_.finish();
        return false;
    }
    [[nodiscard]] const Member& member() const override { return member_; }
    size_t read(std::span<uint8_t> out) override { return listing_.read(member_, out); }
    [[nodiscard]] bool survives(int32_t /*code*/) const override { return false; }

    [[nodiscard]] std::optional<uint64_t> number(int32_t what) const override {
        switch (what) {
            case SHF_MEMBER_STORED: return member_.size;
            case SHF_MEMBER_METHOD: return 0;
            case SHF_MEMBER_MODE: return metadata_.mode();
            case SHF_MEMBER_UID: return metadata_.uid();
            case SHF_MEMBER_GID: return metadata_.gid();
            case SHF_MEMBER_MTIME: {
                const auto time = metadata_.mtime();
                return time ? std::optional(static_cast<uint64_t>(*time)) : std::nullopt;
            }
            default: return std::nullopt;
        }
    }
    [[nodiscard]] std::string_view text(int32_t what) const override {
        const bool is_link =
            member_.kind == MemberKind::hard_link || member_.kind == MemberKind::symbolic_link;
        switch (what) {
            case SHF_MEMBER_LINK: return is_link ? metadata_.link() : std::string_view();
            case SHF_MEMBER_USER: return metadata_.user();
            case SHF_MEMBER_GROUP: return metadata_.group();
            default: return {};
        }
    }

  private:
    FilterReport report_;
    Stats stats_;
    TarMetadata metadata_;
    TarListing listing_;
    Member member_{};
    bool in_member_ = false;
    bool walked_ = false;  // the walk is at its end; the input may have more to prove
};

}  // namespace

std::unique_ptr<MemberWalk> tar_walk(std::unique_ptr<Sequential> input, const Source* source,
                                     const Options& options, const Cancel& cancel) {
    return std::make_unique<TarMemberWalk>(std::move(input), source, options, cancel);
}

}  // namespace shf
