#include "core/cancel.h"
#include "core/opening.h"
#include "core/options.h"
#include "core/stats.h"
#include "libarchive/libarchive_reader.h"
#include "sample/carrier.h"
#include "sample/field_slabs.h"

namespace shf {

namespace {

class LibarchiveCarrier final : public Carrier {
  public:
    LibarchiveCarrier(Source& source, const ReadContext& context, SlabSizer& sizer)
        : context_(context),
          reader_(source, context.options, context.cancel),
          slabs_(context, sizer) {
        if (reader_.is_slow()) context.is_slow();
    }

    // Members before it are read again.
    bool start_at(uint64_t offset) override {
        for (waiting_ = true; reader_.next(waiting_member_);)
            if (waiting_member_.header_offset == offset) return true;
        return waiting_ = false;
    }

    [[nodiscard]] bool any() const override { return reader_.found() > 0; }
    [[nodiscard]] bool counts_members() const override { return true; }

    bool next(Member& member) override {
        if (context_.cancel.requested()) context_.cancel.check();
        if (waiting_) {
            waiting_ = false;
            member = waiting_member_;
            return true;
        }
        return reader_.next(member);
    }

    void finish() override {
        if (reader_.saw_trailing()) context_.stats.add(SHF_STAT_TRAILING);
    }

    void skip(const Member& /*member*/) override {}

    std::optional<Fault> take(const Member& member) override {
        try {
            // The size is a claim, which max_ratio bounds.
            if (reader_.flaw() != MemberFlaw::none) return fault_of(reader_.flaw(), member.size);
            const auto size = static_cast<size_t>(member.size);
            reader_.read_whole({slabs_.room(size), size});
            slabs_.keep(size);
            return std::nullopt;
        } catch (const Error& error) {
            // Not of this member alone, or nothing that the archive has done.
            if (!reader_.can_continue() || ends_call(error.code()) || !skippable(error.code()))
                throw;
            return error.fault();
        }
    }

    [[nodiscard]] std::span<const LooseField> kept() override { return slabs_.kept(); }
    void release() override { slabs_.release(); }

  private:
    const ReadContext context_;
    LibarchiveReader reader_;
    FieldSlabs slabs_;
    bool waiting_ = false;  // start_at() has found the next member
    Member waiting_member_{};
};

}  // namespace

std::unique_ptr<Carrier> libarchive_carrier(Source& source, const ReadContext& context,
                                            SlabSizer& sizer) {
    return std::make_unique<LibarchiveCarrier>(source, context, sizer);
}

}  // namespace shf
