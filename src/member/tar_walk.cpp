#include "codec/filter.h"
#include "core/opening.h"
#include "core/stats.h"
#include "member/member_walk.h"
#include "tar/tar_listing.h"
#include "tar/tar_metadata.h"

#include <utility>

namespace shf {

namespace {

// Remembers that reading failed: nothing can be read behind that.
class Lasting final : public Sequential {
  private:
    template <typename Do>
    auto noting(Do action) {
        try {
            return action();
        } catch (const Error& error) {
            failed_ = failed_ || !ends_call(error.fault().code);
            throw;
        }
    }

  public:
    Lasting(std::unique_ptr<Sequential> input, bool& failed)
        : input_(std::move(input)), failed_(failed) {}

    size_t read(std::span<uint8_t> out) override {
        return noting([&] { return input_->read(out); });
    }
    bool skip(uint64_t size) override {
        return noting([&] { return input_->skip(size); });
    }
    bool ready() override { return input_->ready(); }
    void finish() override {
        noting([&] { input_->finish(); });
    }

  private:
    const std::unique_ptr<Sequential> input_;
    bool& failed_;
};

class TarMemberWalk final : public MemberWalk {
  public:
    TarMemberWalk(std::unique_ptr<Sequential> input, const Source* source, const Options& options,
                  const Cancel& cancel)
        : resync_(options.resync),
          listing_(std::make_unique<Lasting>(open_filter(std::move(input), options, report_),
                                             input_failed_),
                   source, options, cancel, stats_) {
        listing_.keep_metadata(metadata_);
    }

    bool next() override {
        if (!resync_) return find();
        if (damage_ != Damage::none && !pass_damage()) return false;
        try {
            return find();
        } catch (const Error& error) {
            if (!passes(error.fault().code)) throw;
            Fault fault = error.fault();
            // What a header claims as its member's data is not searched for other headers.
            damage_ = in_member_ || walked_ ? Damage::to_end : Damage::in_headers;
            fault.offset = in_member_ ? member_.header_offset : listing_.damaged_from();
            in_member_ = false;
            throw Error(std::move(fault));
        }
    }
    [[nodiscard]] const Member& member() const override { return member_; }
    size_t read(std::span<uint8_t> out) override {
        try {
            return listing_.read(member_, out);
        } catch (const Error& error) {
            if (survives(error.fault().code)) damage_ = Damage::to_end;
            throw;
        }
    }
    [[nodiscard]] bool survives(int32_t code) const override { return passes(code); }
    [[nodiscard]] bool passes(int32_t code) const override {
        return resync_ && !ends_call(code) && skippable(code);
    }
    [[nodiscard]] std::optional<uint64_t> verified() const override {
        return report_.codec ? std::optional(report_.verified) : std::nullopt;
    }

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
    enum class Damage : uint8_t { none, in_headers, to_end };

    bool find() {
        if (in_member_) listing_.skip(member_);
        in_member_ = false;
        if (!walked_ && listing_.next(member_)) return in_member_ = true;
        walked_ = true;
        listing_.finish();
        return false;
    }
    // False when nothing can be found behind it.
    bool pass_damage() {
        in_member_ = false;
        if (damage_ == Damage::to_end || input_failed_) return false;
        if (!listing_.resync()) {
            damage_ = Damage::to_end;
            return false;
        }
        damage_ = Damage::none;
        return true;
    }

    const bool resync_;
    bool input_failed_ = false;
    Damage damage_ = Damage::none;  // that the call before has said
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
