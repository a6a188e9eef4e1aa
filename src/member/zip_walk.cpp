#include "core/opening.h"
#include "io/read_ahead.h"
#include "member/member_walk.h"
#include "zip/zip_pieces.h"

#include <utility>
#include <vector>

namespace shf {

namespace {

constexpr uint64_t permission_bits = 07777;

class ZipMemberWalk final : public MemberWalk {
  public:
    ZipMemberWalk(Source& source, const Options& options, const Cancel& cancel)
        : source_(source),
          cancel_(cancel),
          resync_(options.resync),
          directory_(directory_of(source, options)),
          ahead_(source),
          reader_(ahead_, directory_, options),
          pieces_(ahead_, directory_, options),
          order_(directory_.by_offset()) {}

    bool next() override {
        cancel_.check();
        entry_fault_.reset();
        if (directory_fault_) {
            const Error error(*std::exchange(directory_fault_, std::nullopt));
            throw error;
        }
        if (next_ == order_.size()) {
            source_.verify();
            if (!chain_end_) return false;
            const uint64_t end = *std::exchange(chain_end_, std::nullopt);
            throw Error(SHF_E_TRUNCATED,
                        "no local header follows the last entry that can be found without a "
                        "directory",
                        "copy the file again", end);
        }
        const uint32_t index = order_[next_];
        const ZipEntry& entry = directory_.entry(index);
        // A directory has no data that could be refused later.
        if (entry.fault == ZipFault::directory_data && !resync_) throw directory_.fault_of(index);
        metadata_ = {};
        try {
            reader_.check_place(index, &metadata_);  // the name is the one before the data
        } catch (const Error& error) {
            if (!passes(error.fault().code)) throw;
            entry_fault_ = error.fault();  // said when it is read: its name is known
        }
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
        if (entry_fault_) throw Error(*entry_fault_);
        return pieces_.read(out);
    }
    [[nodiscard]] bool passes(int32_t code) const override {
        return resync_ && !ends_call(code) && skippable(code);
    }
    [[nodiscard]] bool survives(int32_t code) const override {
        if (passes(code)) return true;
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
    // By the local headers, under the option resync, when that of the file cannot be trusted.
    ZipDirectory directory_of(Source& source, const Options& options) {
        try {
            return ZipDirectory(source, options);
        } catch (const Error& error) {
            if (!passes(error.fault().code)) throw;
            directory_fault_ = error.fault();
            return ZipDirectory::of_local_headers(source, options, chain_end_);
        }
    }

    Source& source_;
    const Cancel& cancel_;
    const bool resync_;
    std::optional<Fault> directory_fault_;  // that next() has not said yet
    std::optional<uint64_t> chain_end_;     // where there is no local header, likewise
    const ZipDirectory directory_;
    ReadAhead ahead_;
    const ZipReader reader_;
    ZipPieces pieces_;
    const std::vector<uint32_t> order_;
    size_t next_ = 0;
    const ZipEntry* entry_ = nullptr;  // of the member
    Member member_{};
    ZipMetadata metadata_;
    std::optional<Fault> entry_fault_;  // of the member
};

}  // namespace

std::unique_ptr<MemberWalk> zip_walk(Source& source, const Options& options, const Cancel& cancel) {
    return std::make_unique<ZipMemberWalk>(source, options, cancel);
}

}  // namespace shf
