#include "io/read_ahead.h"
#include "member/member_walk.h"
#include "zip/zip_pieces.h"

#include <vector>

namespace shf {

namespace {

constexpr uint64_t permission_bits = 07777;

class ZipMemberWalk final : public MemberWalk {
  public:
    ZipMemberWalk(Source& source, const Options& options, const Cancel& cancel)
        : source_(source),
          cancel_(cancel),
          directory_(source, options),
          ahead_(source),
          reader_(ahead_, directory_, options),
          pieces_(ahead_, directory_, options),
          order_(directory_.by_offset()) {}

    bool next() override {
        cancel_.check();
        if (next_ == order_.size()) {
            source_.verify();
            return false;
        }
        const uint32_t index = order_[next_];
        const ZipEntry& entry = directory_.entry(index);
        // A directory has no data that could be refused later.
        if (entry.fault == ZipFault::directory_data) throw directory_.fault_of(index);
        metadata_ = {};
        reader_.check_place(index, &metadata_);  // the name is the one before the data
        pieces_.start(index);
        ++next_;
        entry_ = &entry;
        member_ = {.kind = entry.kind,
                   .name = directory_.name(index),
                   .header_offset = entry.offset,
                   .data_offset = entry.offset,
                   .size = entry.size};
        return true;
    }
    [[nodiscard]] const Member& member() const override { return member_; }
    size_t read(std::span<uint8_t> out) override {
        cancel_.check();
        return pieces_.read(out);
    }
    [[nodiscard]] bool survives(int32_t code) const override {
        switch (code) {
            case SHF_E_FORMAT:
            case SHF_E_INTEGRITY:
            case SHF_E_LIMIT:
            case SHF_E_UNSUPPORTED:
            case SHF_E_AMBIGUOUS: return true;
            default: return false;  // the file itself is cut, changed, or cannot be read
        }
    }

    [[nodiscard]] std::optional<uint64_t> number(int32_t what) const override {
        switch (what) {
            case SHF_MEMBER_STORED: return entry_->stored_size;
            case SHF_MEMBER_METHOD: return entry_->method;
            case SHF_MEMBER_CRC32: return entry_->crc;
            case SHF_MEMBER_MODE:
                return entry_->mode != 0 ? std::optional(entry_->mode & permission_bits)
                                         : std::nullopt;
            case SHF_MEMBER_UID: return metadata_.uid;
            case SHF_MEMBER_GID: return metadata_.gid;
            case SHF_MEMBER_MTIME:
                return metadata_.mtime ? std::optional(static_cast<uint64_t>(*metadata_.mtime))
                                       : std::nullopt;
            default: return std::nullopt;
        }
    }
    // A ZIP file has no such texts: the target of a link is its data.
    [[nodiscard]] std::string_view text(int32_t /*what*/) const override { return {}; }

  private:
    Source& source_;
    const Cancel& cancel_;
    const ZipDirectory directory_;
    ReadAhead ahead_;
    const ZipReader reader_;
    ZipPieces pieces_;
    const std::vector<uint32_t> order_;
    size_t next_ = 0;
    const ZipEntry* entry_ = nullptr;  // of the member
    Member member_{};
    ZipMetadata metadata_;
};

}  // namespace

std::unique_ptr<MemberWalk> zip_walk(Source& source, const Options& options, const Cancel& cancel) {
    return std::make_unique<ZipMemberWalk>(source, options, cancel);
}

}  // namespace shf
