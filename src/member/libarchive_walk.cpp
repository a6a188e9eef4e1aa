#include "core/opening.h"
#include "libarchive/libarchive_reader.h"
#include "member/member_walk.h"

namespace shf {

namespace {

class LibarchiveMemberWalk final : public MemberWalk {
  public:
    LibarchiveMemberWalk(Source& source, const Options& options, const Cancel& cancel)
        : reader_(source, options, cancel) {}

    bool next() override { return reader_.next(member_); }
    [[nodiscard]] const Member& member() const override { return member_; }
    size_t read(std::span<uint8_t> out) override { return reader_.read(out); }
    [[nodiscard]] bool survives(int32_t code) const override {
        return reader_.can_continue() && !ends_call(code) && skippable(code);
    }

    [[nodiscard]] std::optional<uint64_t> number(int32_t what) const override {
        switch (what) {
            case SHF_MEMBER_STORED: return member_.size;
            case SHF_MEMBER_METHOD: return 0;
            case SHF_MEMBER_CRC32: return reader_.crc();
            case SHF_MEMBER_MODE: return reader_.mode();
            case SHF_MEMBER_UID: return reader_.uid();
            case SHF_MEMBER_GID: return reader_.gid();
            case SHF_MEMBER_MTIME: {
                const auto time = reader_.mtime();
                return time ? std::optional(static_cast<uint64_t>(*time)) : std::nullopt;
            }
            default: return std::nullopt;
        }
    }
    [[nodiscard]] std::string_view text(int32_t what) const override {
        switch (what) {
            case SHF_MEMBER_LINK: return reader_.link();
            case SHF_MEMBER_USER: return reader_.user();
            case SHF_MEMBER_GROUP: return reader_.group();
            default: return {};
        }
    }

  private:
    LibarchiveReader reader_;
    Member member_{};
};

}  // namespace

std::unique_ptr<MemberWalk> libarchive_walk(Source& source, const Options& options,
                                            const Cancel& cancel) {
    return std::make_unique<LibarchiveMemberWalk>(source, options, cancel);
}

}  // namespace shf
