#include "codec/codec.h"

#include <algorithm>
#include <array>
#include <vector>

namespace shf {

namespace {

constexpr const char* damaged_compress = "damaged data";

// What compress(1) writes: LZW with codes of 9 to 16 bits, after "compress.c" 4.0. The format has
// no check and no end mark: data ends where the file does, and every cut behind a code looks like
// the end. What is inside has to prove itself.
//
// Codes come in groups of eight, as many bytes as a code has bits. Where codes become longer or the
// table is cleared, the rest of the group is filled up with anything.
class Compress final : public Codec {
  public:
    Compress() : prefix_(most_codes), suffix_(most_codes) { text_.reserve(most_codes); }

    Step begin(Bytes /*head*/) override {
        header_ = 0;
        held_ = 0;
        bits_ = 0;
        text_.clear();
        has_last_ = cleared_ = broken_ = false;
        padding_ = 0;
        group_ = 0;
        return {};
    }

    Step decode(Bytes in, std::span<uint8_t> out) override {
        Step step;
        step.verified = true;  // as far as the format has checks
        while (header_ < header_size) {
            if (step.consumed == in.size()) return step;
            if (header_++ < header_size - 1) {
                ++step.consumed;
            } else if (const uint8_t flags = in[step.consumed++]; !start(flags)) {
                return fail(step, SHF_E_UNSUPPORTED, "unknown flags in the header",
                            "compress it again");
            }
        }
        while (give(step, out)) {
            // In a call of its own, so that what came before it is counted.
            if (broken_ && step.produced > 0) return step;
            if (broken_) return fail(step, SHF_E_FORMAT, damaged_compress);
            while (padding_ > 0 && step.consumed < in.size()) {
                ++step.consumed;
                --padding_;
            }
            while (padding_ == 0 && bits_ < width_ && step.consumed < in.size()) {
                held_ |= uint32_t{in[step.consumed++]} << bits_;
                bits_ += 8;
            }
            if (padding_ > 0 || bits_ < width_) return step;  // wants more input
            const uint32_t code = held_ & ((uint32_t{1} << width_) - 1);
            held_ >>= width_;
            bits_ -= width_;
            group_ = (group_ + 1) % 8;
            broken_ = !take(code);
        }
        return step;
    }

    [[nodiscard]] bool exact() const override { return true; }
    [[nodiscard]] bool checked() const override { return false; }
    // Less than a byte of zeros fills up the last code; padding may be left out.
    [[nodiscard]] bool may_end() const override {
        return header_ == header_size && bits_ < 8 && held_ == 0;
    }

  private:
    static constexpr size_t header_size = 3;
    static constexpr uint32_t least_width = 9, clear = 256, most_codes = 1 << 16;

    bool start(uint8_t flags) {
        most_width_ = flags & 0x1f;
        // Of codes that stay at 9 bits, and of tables without a code that clears them, as compress
        // 2.0 had them, readers have different ideas.
        if ((flags & 0xe0) != 0x80 || most_width_ <= least_width || most_width_ > 16) return false;
        next_ = clear + 1;
        set_width(least_width);
        return true;
    }

    void set_width(uint32_t width) {
        width_ = width;
        largest_ = width == most_width_ ? uint32_t{1} << width : (uint32_t{1} << width) - 1;
    }

    // Passes over the rest of the group. At its last bit nothing is left of it.
    void end_group() {
        const uint32_t bits_left = group_ == 0 ? 0 : (8 - group_) * width_;
        // What was taken in beyond the last code is part of the group.
        padding_ = (bits_left - std::min(bits_left, bits_)) / 8;
        bits_ = held_ = 0;
        group_ = 0;
    }

    // The text of a code, backwards, into text_. False when there is no such code.
    bool take(uint32_t code) {
        if (code == clear) {
            end_group();
            set_width(least_width);
            next_ = clear;  // the entry that comes next has no code
            cleared_ = true;
            return has_last_;
        }
        if (code > next_ || ((!has_last_ || cleared_) && code > 255)) return false;
        uint32_t part = code;
        if (code == next_) {
            text_.push_back(first_byte_);
            part = last_;
        }
        for (; part > 255; part = prefix_[part]) text_.push_back(suffix_[part]);
        first_byte_ = static_cast<uint8_t>(part);
        text_.push_back(first_byte_);
        if (has_last_ && next_ < limit()) {
            prefix_[next_] = static_cast<uint16_t>(last_);
            suffix_[next_] = first_byte_;
            ++next_;
        }
        last_ = code;
        has_last_ = true;
        cleared_ = false;
        if (next_ > largest_) {
            end_group();
            set_width(width_ + 1);
        }
        return true;
    }
    [[nodiscard]] uint32_t limit() const { return uint32_t{1} << most_width_; }

    // Moves text to `out`. False when it is full.
    bool give(Step& step, std::span<uint8_t> out) {
        const size_t count = std::min(text_.size(), out.size() - step.produced);
        std::copy_n(text_.rbegin(), count, out.begin() + static_cast<ptrdiff_t>(step.produced));
        text_.resize(text_.size() - count);
        step.produced += count;
        return step.produced < out.size();
    }

    // Of each code above 255: the code of all but its last byte, which is smaller, and that byte.
    std::vector<uint16_t> prefix_;
    std::vector<uint8_t> suffix_;
    std::vector<uint8_t> text_;  // decoded and not given out, backwards
    size_t header_ = 0;          // bytes of it that were read
    uint32_t most_width_ = 16, width_ = least_width;
    uint32_t largest_ = 0;              // behind the entry with this number codes are longer
    uint32_t next_ = 0;                 // number of the next entry
    uint32_t held_ = 0, bits_ = 0;      // input that is no whole code yet
    uint32_t group_ = 0, padding_ = 0;  // codes of the group so far; bytes to pass over
    bool has_last_ = false, cleared_ = false, broken_ = false;
    uint32_t last_ = 0;  // the code before, and the first byte of its text
    uint8_t first_byte_ = 0;
};

}  // namespace

std::unique_ptr<Codec> make_compress() {
    return std::make_unique<Compress>();
}

}  // namespace shf
