#include "codec/filter.h"
#include "codec/magic.h"
#include "core/options.h"
#include "core/stats.h"
#include "sample/carrier.h"
#include "tar/tar.h"
#include "tar/window.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace shf {

namespace {

class TarCarrier final : public Carrier, private SlabKeeper {
  public:
    TarCarrier(Source& source, std::string_view url, const ReadContext& context, SlabSizer& sizer)
        : context_(context),
          sizer_(sizer),
          input_(open_filter(source.open_sequential(0), context.options, report_)),
          window_(*input_, context, sizer, this),
          walker_(window_, context.options, context.stats) {
        window_.need(1);  // the filter is known from the first bytes on
        if (!report_.codec) walker_.set_source(source);
        if (report_.codec && is_slow_codec(report_.codec)) context.is_slow();
        const char* suffix = codec_of_suffix(url);
        if (url.starts_with("pipe:")) {  // its words tell nothing about its output
        } else if (suffix ? !report_.codec || std::string_view(suffix) != report_.codec
                          : report_.codec && url.ends_with(".tar"))
            context.stats.add(SHF_STAT_SUFFIX_MISMATCHES);
    }

    bool start_at(uint64_t offset) override { return window_.skip(offset, 0); }

    bool next(Member& member) override {
        if (!walker_.next(member)) return false;
        end_ = end_of(member);
        return true;
    }

    void finish() override {
        input_->finish();
        if (report_.trailing || walker_.saw_trailing()) context_.stats.add(SHF_STAT_TRAILING);
    }

    void skip(const Member& member) override { walker_.skip_data(member); }

    std::optional<Fault> take(const Member& member) override {
        if (rows_.empty()) window_.mark();
        walker_.take_data(member);
        rows_.push_back({.offset = member.data_offset, .size = member.size});
        walker_.pass_padding(member);
        return std::nullopt;
    }

    std::optional<Fault> take_start(const Member& member) override {
        if (report_.codec) return take(member);
        const uint64_t size = std::min(member.size, start_size);
        if (rows_.empty()) window_.mark();
        walker_.take_start(member, size);
        rows_.push_back(
            {.offset = member.data_offset, .size = size, .deferred = member.size - size});
        sizer_.after_jump();
        walker_.skip_rest(member, size);
        return std::nullopt;
    }

    bool places(std::vector<MemberPlace>& out) const override {
        if (report_.codec) return false;
        for (const Row& row : rows_) out.push_back({row.offset, row.size + row.deferred});
        return true;
    }
    [[nodiscard]] bool any() const override { return end_ > 0; }
    [[nodiscard]] uint64_t end() const override { return end_; }
    [[nodiscard]] const uint64_t* verified() const override {
        return report_.codec ? &report_.verified : nullptr;
    }

    void kept(std::vector<LooseField>& out) const override {
        for (const Row& row : rows_)
            out.push_back({row.data ? row.data : window_.at(row.offset),
                           row.size,
                           row.data ? &left_behind_[row.slab] : &window_.slab(),
                           {row.offset + row.size, row.deferred}});
    }

    void release() override {
        rows_.clear();
        left_behind_.clear();
        window_.unmark();
    }

  private:
    struct Row {
        uint64_t offset = 0, size = 0;
        const uint8_t* data = nullptr;  // NULL while the window still has it
        size_t slab = 0;                // index in left_behind_ when data is set
        uint64_t deferred = 0;          // bytes after them that are not read here
    };
    // Of a deferred member: it has the header of an .npy.
    static constexpr uint64_t start_size = 512;

    void leave_behind(const StorageRef& slab) override;

    const ReadContext context_;
    SlabSizer& sizer_;
    FilterReport report_;
    const std::unique_ptr<Sequential> input_;
    Window window_;
    TarWalker walker_;
    uint64_t end_ = 0;
    std::vector<Row> rows_;
    std::vector<StorageRef> left_behind_;
};

void TarCarrier::leave_behind(const StorageRef& slab) {
    // Fields that were left before come first. None is new when a member was skipped meanwhile.
    if (rows_.empty() || rows_.back().data) return;
    uint64_t bytes = 0;
    for (size_t i = rows_.size(); i-- > 0 && !rows_[i].data;) bytes += rows_[i].size;
    // A slab is kept for the fields that fill it. A few bytes are copied out: with large members
    // between them that belong to no sample, they would hold slab after slab.
    const bool copied = bytes < slab->capacity / 8;
    const StorageRef kept =
        copied ? context_.pool.acquire(static_cast<size_t>(bytes), context_.cancel) : slab;
    uint8_t* to = kept->data;
    for (size_t i = rows_.size(); i-- > 0 && !rows_[i].data;) {
        rows_[i].data = window_.at(rows_[i].offset);
        rows_[i].slab = left_behind_.size();
        if (!copied) continue;
        if (rows_[i].size > 0) std::memcpy(to, rows_[i].data, rows_[i].size);
        rows_[i].data = std::exchange(to, to + rows_[i].size);
    }
    left_behind_.push_back(kept);
}

}  // namespace

std::unique_ptr<Carrier> tar_carrier(Source& source, std::string_view url,
                                     const ReadContext& context, SlabSizer& sizer) {
    return std::make_unique<TarCarrier>(source, url, context, sizer);
}

}  // namespace shf
