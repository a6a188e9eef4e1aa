#include "format/fixed_span.h"

#include <lzma.h>

namespace shf {

namespace {

// Size of the stream header: magic, flags and their CRC (.xz file format, 2.1.1).
constexpr uint64_t stream_header = 12;

class Xz final : public FixedSpanCodec {
  public:
    // Twice the window holds the dictionary and what liblzma needs beside it.
    explicit Xz(uint64_t max_window) : memory_(2 * max_window) {}
    Xz(const Xz&) = delete;
    Xz& operator=(const Xz&) = delete;
    ~Xz() override { lzma_end(&stream_); }

  private:
    // The single-threaded decoder, one stream at a time: LZMA_CONCATENATED would bring its own
    // rules for padding and junk. A second call uses the memory of the first.
    Step reset() override {
        if (lzma_stream_decoder(&stream_, memory_, LZMA_TELL_UNSUPPORTED_CHECK) != LZMA_OK)
            return fail({}, SHF_E_NOMEM, "no memory for the decoder");
        return {};
    }

    Step call(Bytes in, std::span<uint8_t> out) override {
        stream_.next_in = in.data();
        stream_.avail_in = in.size();
        stream_.next_out = out.data();
        stream_.avail_out = out.size();
        const lzma_ret result = lzma_code(&stream_, LZMA_RUN);
        Step step{in.size() - stream_.avail_in, out.size() - stream_.avail_out, Step::more};
        switch (result) {
            case LZMA_OK:
            case LZMA_BUF_ERROR: return step;  // a call that had nothing to do, seen by the caller
            case LZMA_STREAM_END: step.state = Step::end; return step;
            case LZMA_MEM_ERROR: return fail(step, SHF_E_NOMEM, "no memory for the dictionary");
            case LZMA_MEMLIMIT_ERROR:
                return fail(step, SHF_E_LIMIT,
                            "the decoder needs " + std::to_string(lzma_memusage(&stream_)) +
                                " bytes, the limit is " + std::to_string(memory_) +
                                " (twice max_window)",
                            "raise max_window");
            case LZMA_UNSUPPORTED_CHECK:
                return fail(step, SHF_E_UNSUPPORTED, "unknown type of integrity check",
                            "compress it again");
            case LZMA_OPTIONS_ERROR:
                return fail(step, SHF_E_UNSUPPORTED, "unknown filter or header option",
                            "compress it again");
            case LZMA_FORMAT_ERROR: return fail(step, SHF_E_FORMAT, "bad stream header");
            case LZMA_DATA_ERROR:
                if (stream_.total_in <= stream_header)
                    return fail(step, SHF_E_FORMAT, "damaged stream header");
                // liblzma has one code for a wrong check and for damage that makes decoding
                // impossible.
                return fail(step, SHF_E_INTEGRITY, "damaged data or wrong integrity check");
            default: return fail(step, SHF_E_INTERNAL, "liblzma refused the call");
        }
    }

    uint64_t memory_;
    lzma_stream stream_ = LZMA_STREAM_INIT;
};

}  // namespace

std::unique_ptr<Codec> make_xz(uint64_t max_window) {
    return std::make_unique<Xz>(max_window);
}

std::string xz_version() {
    return std::string("liblzma ") + lzma_version_string();
}

}  // namespace shf
