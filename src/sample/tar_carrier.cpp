#include "codec/filter.h"
#include "codec/indexed_filter.h"
#include "codec/magic.h"
#include "core/options.h"
#include "core/stats.h"
#include "sample/carrier.h"
#include "tar/tar.h"
#include "tar/window.h"

#include <algorithm>
#include <cstring>
#include <forward_list>
#include <memory>
#include <utility>

namespace shf {

namespace {

class TarCarrier final : public Carrier, private SlabKeeper {
  public:
    TarCarrier(Source& source, std::string_view url, const ReadContext& context, SlabSizer& sizer,
               const SampleRequest& request)
        : context_(context),
          sizer_(sizer),
          mapping_(plain_mapping(source)),
          input_(open_input(source, request)),
          window_(*input_, context, sizer, this),
          walker_(window_, context.options, context.stats) {
        window_.set_mapping(mapping_);
        if (!report_.codec) window_.need(1);  // the filter is known from the first bytes on
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
        if (fields_.empty()) window_.mark();
        walker_.take_data(member);
        fields_.push_back({nullptr, member.size, nullptr, member.data_offset});
        walker_.pass_padding(member);
        return std::nullopt;
    }

    std::optional<Fault> take_start(const Member& member) override {
        if (report_.codec) return take(member);
        const uint64_t size = std::min(member.size, start_size);
        if (fields_.empty()) window_.mark();
        walker_.take_start(member, size);
        fields_.push_back({nullptr, size, nullptr, member.data_offset, member.size - size});
        sizer_.after_jump();
        walker_.skip_rest(member, size);
        return std::nullopt;
    }

    [[nodiscard]] bool in_place() const override { return !report_.codec || recorder_; }
    std::optional<DecodePoints> take_points() override {
        if (!report_.codec || !recorder_) return std::nullopt;
        return recorder_->finish(report_.codec);
    }
    [[nodiscard]] bool any() const override { return end_ > 0; }
    [[nodiscard]] uint64_t end() const override { return end_; }
    [[nodiscard]] const uint64_t* verified() const override {
        return report_.codec ? &report_.verified : nullptr;
    }

    [[nodiscard]] std::span<const LooseField> kept() override {
        for (LooseField& field : in_window()) {
            field.data = window_.at(field.offset);
            field.storage = &window_.slab();
        }
        return fields_;
    }

    void release() override {
        fields_.clear();
        left_ = 0;
        left_behind_.clear();
        window_.unmark();
    }

  private:
    // Of a deferred member: it has the header of an .npy.
    static constexpr uint64_t start_size = 512;

    // What a shard that is not compressed has in memory.
    static std::shared_ptr<const Mapping> plain_mapping(const Source& source) {
        auto mapping = source.mapping();
        if (!mapping || mapping->bytes().size() < magic_size) return nullptr;
        mapping->expect({.offset = 0, .size = magic_size}, true);
        return codec_of_magic(mapping->bytes().first(magic_size)) ? nullptr : mapping;
    }
    std::unique_ptr<Sequential> open_input(Source& source, const SampleRequest& request) {
        if (mapping_) return source.open_sequential(0);
        if (request.points)
            return open_indexed_filter(source, request.points, context_.options, context_.cancel,
                                       request.decoders, report_);
        if (!request.places)
            return open_filter(source.open_sequential(0), context_.options, report_);
        return open_recorded_filter(source.open_sequential(0), context_.options, report_,
                                    recorder_.emplace());
    }
    // The fields whose data moves with the window.
    [[nodiscard]] std::span<LooseField> in_window() { return std::span(fields_).subspan(left_); }
    void leave_behind(const StorageRef& slab) override;

    const ReadContext context_;
    SlabSizer& sizer_;
    const std::shared_ptr<const Mapping> mapping_;  // NULL: what input_ gives is read
    FilterReport report_;
    std::optional<PointRecorder> recorder_;
    const std::unique_ptr<Sequential> input_;
    Window window_;
    TarWalker walker_;
    uint64_t end_ = 0;
    std::vector<LooseField> fields_;
    size_t left_ = 0;  // so many of them, the first ones, were left behind
    std::forward_list<StorageRef> left_behind_;
};

void TarCarrier::leave_behind(const StorageRef& slab) {
    const std::span<LooseField> fields = in_window();
    if (fields.empty()) return;  // members were skipped meanwhile
    uint64_t bytes = 0;
    for (const LooseField& field : fields) bytes += field.size;
    // A slab is kept for the fields that fill it. A few bytes are copied out: with large members
    // between them that belong to no sample, they would hold slab after slab.
    const bool copied = bytes < slab->capacity / 8;
    const StorageRef& kept = left_behind_.emplace_front(
        copied ? context_.pool.acquire(static_cast<size_t>(bytes), context_.cancel) : slab);
    uint8_t* to = kept->data;
    for (LooseField& field : fields) {
        field.data = window_.at(field.offset);
        field.storage = &kept;
        if (!copied) continue;
        if (field.size > 0) std::memcpy(to, field.data, field.size);
        field.data = std::exchange(to, to + field.size);
    }
    left_ = fields_.size();
}

}  // namespace

std::unique_ptr<Carrier> tar_carrier(Source& source, std::string_view url,
                                     const ReadContext& context, SlabSizer& sizer,
                                     const SampleRequest& request) {
    return std::make_unique<TarCarrier>(source, url, context, sizer, request);
}

}  // namespace shf
