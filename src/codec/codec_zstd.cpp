#include "codec/codec.h"
#include "codec/frame_walk.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <bit>
#include <new>

namespace shf {

namespace {

uint64_t little_endian(Bytes bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes.size(); ++i) value |= uint64_t{bytes[i]} << (8 * i);
    return value;
}

// RFC 8878, 3.1.1.1. The public interface of libzstd does not tell these.
struct FrameHeader {
    size_t size;
    size_t trailer;
    uint64_t dictionary;
    uint64_t window;
    uint64_t content;  // 0: unknown

    // `head` starts with the magic; with fewer bytes than `size` the three values are 0.
    explicit FrameHeader(Bytes head) {
        const unsigned descriptor = head.size() > 4 ? head[4] : 0;
        const bool single_segment = (descriptor & 0x20) != 0;
        const size_t window_size = single_segment ? 0 : 1;
        const size_t dictionary_size = (1U << (descriptor & 3)) >> 1;
        const unsigned content_flag = descriptor >> 6;
        const size_t content_size =
            content_flag == 0 ? (single_segment ? 1 : 0) : size_t{1} << content_flag;
        size = 5 + window_size + dictionary_size + content_size;
        trailer = (descriptor & 4) != 0 ? 4 : 0;
        dictionary = 0;
        window = 0;
        content = 0;
        if (head.size() < size) return;
        dictionary = little_endian(head.subspan(5 + window_size, dictionary_size));
        if (content_size > 0)
            content = little_endian(head.subspan(5 + window_size + dictionary_size, content_size)) +
                      (content_flag == 1 ? 256 : 0);
        if (single_segment) {
            window = content;
        } else {
            const uint64_t base = uint64_t{1} << (10 + (head[5] >> 3));
            window = base + base / 8 * (head[5] & 7U);
        }
    }
};

// RFC 8878, 3.1.1.2
FrameWalk::Block read_zstd_block(uint32_t header, const FrameWalk::Layout& /*layout*/) {
    const bool run = ((header >> 1) & 3) == 1;
    return {run ? 1 : header >> 3, 0, (header & 1) != 0};
}

class Zstd final : public Codec {
  public:
    explicit Zstd(uint64_t max_window) : max_window_(max_window) {
        if (!context_) throw std::bad_alloc();
        // begin() is the exact check; this one bounds the library in powers of two.
        const ZSTD_bounds bounds = ZSTD_dParam_getBounds(ZSTD_d_windowLogMax);
        const int log = std::clamp(static_cast<int>(std::bit_width(max_window - 1)),
                                   bounds.lowerBound, bounds.upperBound);
        ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, log);
    }

    Step begin(Bytes head) override {
        if (head.size() > 3 && head[0] != 0x28)
            return fail({}, SHF_E_UNSUPPORTED, "frame of a zstd before 0.8", "compress it again");
        const FrameHeader header(head);
        if (header.dictionary != 0)
            return fail({}, SHF_E_UNSUPPORTED,
                        "the frame needs dictionary " + std::to_string(header.dictionary),
                        "compress it again without one");
        if (header.window > max_window_)
            return fail({}, SHF_E_LIMIT,
                        "the frame needs a window of " + std::to_string(header.window) +
                            " bytes, max_window is " + std::to_string(max_window_),
                        "raise max_window");
        full_ = false;
        checked_ = header.trailer > 0;
        claimed_ = header.content;
        walk_.start({header.size, 3, 0, header.trailer}, read_zstd_block);
        ZSTD_DCtx_reset(context_.get(), ZSTD_reset_session_only);
        return {};
    }

    Step decode(Bytes in, std::span<uint8_t> out) override {
        // The frame header alone also keeps libzstd from its one-call path, where the window limit
        // does not hold and a fault takes all output with it.
        const Bytes part = full_ ? in.first(0) : walk_.part(in);
        ZSTD_inBuffer source{part.data(), part.size(), 0};
        ZSTD_outBuffer target{out.data(), out.size(), 0};
        const size_t result = ZSTD_decompressStream(context_.get(), &target, &source);
        Step step{source.pos, target.pos, Step::more};
        if (ZSTD_isError(result)) return refuse(step, result);
        walk_.advance(part.first(source.pos));
        if (full_ && target.pos == 0 && result != 0) {
            full_ = false;
            return decode(in, out);
        }
        full_ = target.pos == out.size();
        if (result == 0) step.state = Step::end;
        step.verified = !checked_ || result == 0;
        return step;
    }

    [[nodiscard]] bool exact() const override { return true; }
    [[nodiscard]] bool checked() const override { return checked_; }
    [[nodiscard]] uint64_t claimed_size() const override { return claimed_; }

  private:
    Step refuse(Step step, size_t result) {
        switch (ZSTD_getErrorCode(result)) {
            case ZSTD_error_checksum_wrong:
                return fail(step, SHF_E_INTEGRITY, "wrong content checksum");
            case ZSTD_error_memory_allocation:
                return fail(step, SHF_E_NOMEM, "no memory for the window");
            case ZSTD_error_frameParameter_windowTooLarge:
                return fail(step, SHF_E_LIMIT, "the frame needs a larger window than max_window",
                            "raise max_window");
            case ZSTD_error_dictionary_wrong:
                return fail(step, SHF_E_UNSUPPORTED, "the frame needs a dictionary",
                            "compress it again without one");
            case ZSTD_error_frameParameter_unsupported:
                return fail(step, SHF_E_FORMAT, "a reserved bit of the frame header is set");
            default: return fail(step, SHF_E_FORMAT, "damaged frame");
        }
    }

    struct Free {
        void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
    };

    uint64_t max_window_;
    uint64_t claimed_ = 0;
    bool checked_ = false;  // the frame has a checksum over its content
    std::unique_ptr<ZSTD_DCtx, Free> context_{ZSTD_createDCtx()};
    FrameWalk walk_;
    // The last call filled the span: the library may hold more output of the same part, which has
    // to leave before the next part comes in.
    bool full_ = false;
};

}  // namespace

std::unique_ptr<Codec> make_zstd(uint64_t max_window) {
    return std::make_unique<Zstd>(max_window);
}

std::string zstd_version() {
    return std::string("libzstd ") + ZSTD_versionString();
}

}  // namespace shf
