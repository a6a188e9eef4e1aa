#include "core/cancel.h"
#include "core/options.h"
#include "io/read_ahead.h"
#include "sample/carrier.h"
#include "sample/field_slabs.h"
#include "sample/name.h"
#include "sample/shard_format.h"
#include "zip/zip_entry.h"

#include <algorithm>
#include <memory>
#include <string>

namespace shf {

namespace {

class ZipCarrier final : public Carrier {
  public:
    ZipCarrier(Source& source, const ReadContext& context, SlabSizer& sizer)
        : source_(source),
          context_(context),
          mapping_(source.mapping()),
          directory_(source, context.options),
          ahead_(source),
          reader_(ahead_, directory_, context.options),
          places_(mapping_ ? source : ahead_, directory_, context.options),
          order_(directory_.by_offset()),
          slabs_(context, sizer) {
        // Where the directory has another order than the file, an offset that is wrong moves its
        // entry away from its sample, which would be delivered without it.
        for (size_t i = 0; i < directory_.size() && !directory_.sorted(); ++i)
            places_.check_place(i);
        if (!order_.empty() && is_slow_zip_method(directory_.entry(order_[0]).method))
            context.is_slow();
    }

    bool start_at(uint64_t offset) override {
        while (next_ < order_.size() && directory_.entry(order_[next_]).offset < offset) ++next_;
        return next_ < order_.size() && directory_.entry(order_[next_]).offset == offset;
    }

    [[nodiscard]] bool any() const override { return true; }

    bool next(Member& member) override {
        if (context_.cancel.requested()) context_.cancel.check();
        if (next_ == order_.size()) return false;
        current_ = order_[next_++];
        const ZipEntry& entry = directory_.entry(current_);
        // A directory has no sample that could be bad in its place.
        if (entry.fault == ZipFault::directory_data) throw directory_.fault_of(current_);
        check_name(entry);
        member = {.kind = entry.kind,
                  .name = directory_.name(current_),
                  .header_offset = entry.offset,
                  .data_offset = entry.offset,
                  .size = entry.size};
        return true;
    }

    void finish() override { source_.verify(); }

    void skip(const Member& /*member*/) override {}

    // Nobody reads the entry, and so nobody would see that it is a field of another name, which may
    // be wanted.
    void leave_out(const Member& /*member*/) override {
        if (compared_ == 0) places_.check_place(current_);
    }

    std::optional<Fault> take(const Member& member) override {
        try {
            if (mapping_ && directory_.entry(current_).method == 0)
                show();
            else
                read(static_cast<size_t>(member.size));
            return std::nullopt;
        } catch (const Error& error) {
            switch (error.code()) {
                case SHF_E_FORMAT:
                case SHF_E_INTEGRITY:
                case SHF_E_LIMIT:
                case SHF_E_UNSUPPORTED:
                case SHF_E_AMBIGUOUS: return error.fault();
                default: throw;  // the file itself is cut, changed, or cannot be read
            }
        }
    }

    [[nodiscard]] std::span<const LooseField> kept() override { return slabs_.kept(); }

    void release() override { slabs_.release(); }

  private:
    // So much is read and decompressed in memory that is not counted.
    static constexpr uint64_t uncounted = 4 << 20;
    // So much of a mapping is looked at in one call.
    static constexpr uint64_t at_once = 512 * 1024;

    // A name that is wrong in the directory would end a sample before its last field, or hide the
    // field, before anybody compares it: so where a name starts another sample, or belongs to none,
    // it is compared at once. Within a sample, reading the entry is soon enough.
    void check_name(const ZipEntry& entry) {
        const MemberName name = split_name(directory_.name(current_));
        const bool in_a_sample = entry.kind == MemberKind::file && name.has_key;
        compared_ = 0;
        if (in_a_sample && in_sample_ && name.key == key_) return;
        in_sample_ = in_a_sample;
        if (in_sample_) key_.assign(name.key);
        compared_ = places_.check_place(current_);
    }

    // Keeps a stored entry where it is in memory.
    void show() {
        context_.admit(static_cast<size_t>(directory_.entry(current_).size));
        const ByteRange range = places_.range(current_);
        if (range.size > 0 &&
            (range.offset < expected_from_ || range.offset + range.size > expected_to_)) {
            const uint64_t left = mapping_->bytes().size() - range.offset;
            const ByteRange more{range.offset, std::min(std::max(range.size, at_once), left)};
            mapping_->expect(more, true);
            expected_from_ = more.offset;
            expected_to_ = more.offset + more.size;
        }
        const auto bytes = places_.view(current_, mapping_->bytes());
        slabs_.keep(context_.pool.borrow(mapping_->memory(), bytes));
    }

    void read(size_t size) {
        const ZipEntry& entry = directory_.entry(current_);
        const uint64_t stored = entry.method == 0 ? 0 : entry.stored_size;
        const uint64_t counted = stored > uncounted ? stored : 0;
        const uint64_t memory = context_.options.memory;
        if (counted > memory - std::min<uint64_t>(memory, size))
            throw Error(SHF_E_LIMIT,
                        "a compressed entry takes " + std::to_string(stored) + " + " +
                            plural(size, "byte") + ", more than memory=" + std::to_string(memory),
                        "raise memory");
        uint8_t* data = slabs_.room(size, static_cast<size_t>(counted));
        reader_.read(current_, {data, size}, scratch_, compared_);
        slabs_.keep(size);
    }

    Source& source_;
    const ReadContext context_;
    const std::shared_ptr<const Mapping> mapping_;  // NULL: entries are read
    const ZipDirectory directory_;
    ReadAhead ahead_;
    const ZipReader reader_;
    const ZipReader places_;  // compares headers; what is mapped need not be read ahead for it
    const std::vector<uint32_t> order_;
    ZipScratch scratch_;
    size_t next_ = 0;
    uint32_t current_ = 0;
    bool in_sample_ = false;
    uint64_t expected_from_ = 0, expected_to_ = 0;  // of the mapping
    size_t compared_ = 0;  // length of the current entry's local header, once it was compared
    std::string key_;      // of the sample that the last entry belongs to, when in_sample_
    FieldSlabs slabs_;
};

}  // namespace

std::unique_ptr<Carrier> zip_carrier(Source& source, const ReadContext& context, SlabSizer& sizer) {
    return std::make_unique<ZipCarrier>(source, context, sizer);
}

std::unique_ptr<Carrier> open_carrier(Source& source, std::string_view url,
                                      const ReadContext& context, SlabSizer& sizer,
                                      const SampleRequest& request) {
    if (source.seekable() && source.size()) switch (shard_format(source, url, context.options)) {
            case ShardFormat::zip: return zip_carrier(source, context, sizer);
            case ShardFormat::other: return libarchive_carrier(source, context, sizer);
            case ShardFormat::tar:
            case ShardFormat::compressed_tar: break;
        }
    return tar_carrier(source, url, context, sizer, request);
}

}  // namespace shf
