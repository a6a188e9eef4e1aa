#include "decode/field_unpacker.h"

#include "codec/magic.h"
#include "core/error.h"
#include "core/little_endian.h"
#include "core/options.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace shf {

namespace {

constexpr const char* field_damage = "write the field again, or use on_error=skip_sample";

constexpr std::string_view codec_name(FieldCodec codec) {
    return codec == FieldCodec::gzip ? "gzip" : "zstd";
}

// One field on its way out.
class Unpacking {
  public:
    Unpacking(FieldCodec kind, Codec& codec, std::span<const uint8_t> field)
        : name_(codec_name(kind)), codec_(codec), field_(field) {}

    // Behind a frame, or before the first one. False: that was all.
    bool next_frame() {
        for (;;) {
            while (frames_ > 0 && at_ < field_.size() && field_[at_] == 0) ++at_;
            if (at_ == field_.size() && frames_ > 0) return false;
            const Bytes head = rest().first(std::min(rest().size(), frame_head));
            const CodecMagic* magic = find_magic(head);
            const bool fits =
                magic != nullptr && (magic->skippable ? name_ == "zstd" : name_ == magic->codec);
            if (!fits) refuse_frame(head);
            ++frames_;
            frame_ = at_;
            if (!magic->skippable) {
                if (codec_.begin(head).state == Step::failed) throw_fault();
                stalls_ = 0;
                return true;
            }
            skip_frame(head);
        }
    }

    // Writes what comes next.
    Step decode(std::span<uint8_t> out) {
        const Step step = codec_.decode(rest(), out);
        if (step.state == Step::failed) throw_fault();
        at_ += step.consumed;
        if (step.state == Step::end || step.consumed > 0 || step.produced > 0) {
            stalls_ = 0;
        } else if (rest().empty()) {
            throw cut();
        } else if (++stalls_ == 2) {
            throw Error(SHF_E_FORMAT, words("the decoder makes no progress"), field_damage);
        }
        return step;
    }

  private:
    [[nodiscard]] Bytes rest() const { return field_.subspan(at_); }

    // RFC 8878, 3.1.2: magic, length, content.
    void skip_frame(Bytes head) {
        if (head.size() < 8) throw cut();
        const uint64_t size = 8 + uint64_t{le32(&head[4])};
        if (size > rest().size()) throw cut();
        at_ += static_cast<size_t>(size);
    }

    [[noreturn]] void refuse_frame(Bytes head) const {
        const std::string name(name_);
        if (frames_ > 0 && cut_magic(head, name_)) throw cut();
        if (frames_ > 0)
            throw Error(SHF_E_FORMAT,
                        "byte " + std::to_string(at_) + " of the field, behind its " + name +
                            " data, starts no more of it",
                        field_damage);
        std::string cause = field_.empty() ? "a field of 0 bytes is no " + name + " data"
                                           : "the field does not begin as " + name + " data does";
        if (const char* other = codec_of_magic(head)) cause += ", but as " + std::string(other);
        throw Error(SHF_E_FORMAT, cause,
                    "compress the field as its name says, or rename it, or take it as it is "
                    "stored with the kind bytes/compressed");
    }

    [[nodiscard]] std::string words(const std::string& cause) const {
        return std::string(name_) + ": " + cause +
               (frame_ == 0 ? "" : ", in what begins at byte " + std::to_string(frame_));
    }
    [[nodiscard]] Error cut() const {
        return Error(SHF_E_TRUNCATED,
                     "the " + std::string(name_) + " data of the field ends too early, after " +
                         plural(field_.size(), "byte"),
                     field_damage);
    }
    [[noreturn]] void throw_fault() const {
        const Fault fault = codec_.fault(field_damage);
        throw Error(fault.code, words(fault.cause), fault.help);
    }

    const std::string_view name_;
    Codec& codec_;
    const Bytes field_;
    size_t at_ = 0;     // what was used
    size_t frame_ = 0;  // where the latest frame began
    size_t frames_ = 0;
    unsigned stalls_ = 0;  // calls in a row without progress
};

// Larger than anything that so much compressed data becomes by chance; more than that is taken when
// it is needed.
constexpr uint64_t likely_ratio = 64;
// Room behind what a frame says that it has, so that it ends in one call.
constexpr uint64_t spare = 64;

// What the last member of a gzip file says that it has, modulo 2^32.
uint64_t gzip_claim(std::span<const uint8_t> field) {
    return field.size() < 18 ? 0 : le32(&field[field.size() - 4]);
}

}  // namespace

UnpackLimits::UnpackLimits(const Options& options)
    : bytes(std::min(options.max_decoded, options.memory)),
      window(std::min(options.max_window, options.memory)) {}

std::pair<FieldCodec, std::string_view> field_codec(std::string_view name) {
    const size_t dot = name.rfind('.');
    const std::string_view suffix = dot == name.npos ? name : name.substr(dot + 1);
    const std::string_view before = dot == name.npos ? std::string_view() : name.substr(0, dot);
    if (suffix == "gz") return {FieldCodec::gzip, before};
    if (suffix == "zst") return {FieldCodec::zstd, before};
    return {FieldCodec::none, name};
}

// Behind what is there: room for `wanted` bytes in all as long as that is sensible, and for one
// byte at least, up to `most` in all.
std::span<uint8_t> UnpackedField::room(uint64_t wanted, uint64_t most) {
    if (size_ == capacity_ || (size_ == 0 && wanted > capacity_)) {
        constexpr uint64_t least = 4096;
        const auto capacity =
            static_cast<size_t>(std::min(std::max({wanted, uint64_t{capacity_} * 2, least}), most));
        auto larger = std::make_unique_for_overwrite<uint8_t[]>(capacity);
        if (size_ > 0) std::memcpy(larger.get(), memory_.get(), size_);
        memory_ = std::move(larger);
        capacity_ = capacity;
    }
    return {memory_.get() + size_, capacity_ - size_};
}

Codec& FieldUnpacker::decoder(FieldCodec codec, uint64_t window) {
    if (codec == FieldCodec::gzip) {
        if (!gzip_) gzip_ = make_gzip();
        return *gzip_;
    }
    if (!zstd_ || window_ != window) zstd_ = make_zstd(window);
    window_ = window;
    return *zstd_;
}

std::span<const uint8_t> FieldUnpacker::unpack(FieldCodec kind, std::span<const uint8_t> field,
                                               const UnpackLimits& limits, UnpackedField& out) {
    Codec& codec = decoder(kind, limits.window);
    Unpacking unpacking(kind, codec, field);
    const auto too_large = [&] {
        return Error(SHF_E_LIMIT,
                     "the field of " + plural(field.size(), "byte") + " unpacks to more than " +
                         plural(limits.bytes, "byte") +
                         ", the smaller one of max_decoded and memory",
                     "raise max_decoded, or memory, if you trust the source");
    };
    out.size_ = 0;
    const uint64_t most = std::min(limits.bytes, uint64_t{SIZE_MAX} - 1) + 1;
    const uint64_t likely = std::min<uint64_t>(field.size(), UINT32_MAX) * likely_ratio;
    while (unpacking.next_frame()) {
        const uint64_t claim = kind == FieldCodec::gzip ? gzip_claim(field) : codec.claimed_size();
        if (kind == FieldCodec::zstd && claim > limits.bytes) throw too_large();
        for (Step step; step.state != Step::end;) {
            step = unpacking.decode(out.room(std::min(claim, likely) + spare, most));
            out.size_ += step.produced;
            if (out.size_ > limits.bytes) throw too_large();
        }
    }
    return out.bytes();
}

}  // namespace shf
