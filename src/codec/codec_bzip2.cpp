#include "codec/codec.h"

#include <bzlib.h>

#include <algorithm>

namespace shf {

namespace {

// libbz2 takes in a whole block before it puts out any byte of it, and compares the CRC of a block
// when its last byte is out. Calls with input alone and calls with output alone, in turn, therefore
// tell where a block is over and verified.
class Bzip2 final : public Codec {
  public:
    Bzip2() = default;
    Bzip2(const Bzip2&) = delete;
    Bzip2& operator=(const Bzip2&) = delete;
    ~Bzip2() override { close(); }

    // libbz2 has no reset; its block buffers (up to 3.6 MB) come only with the first block.
    Step begin(Bytes /*head*/) override {
        close();
        stream_ = {};
        if (BZ2_bzDecompressInit(&stream_, 0, 0) != BZ_OK)
            return fail({}, SHF_E_NOMEM, "no memory for the decoder");
        open_ = true;
        has_block_ = false;
        return {};
    }

    Step decode(Bytes in, std::span<uint8_t> out) override {
        if (has_block_) {
            Step step = call({}, out);
            if (step.state != Step::more || step.produced == out.size()) return step;
            has_block_ = false;
            step.verified = true;
            if (step.produced > 0 || in.empty()) return step;
        }
        // It stops for a block that waits to be put out, or for more input: the next call shows
        // which.
        Step step = call(in, {});
        has_block_ = step.state == Step::more;
        step.verified = true;
        return step;
    }

    [[nodiscard]] bool exact() const override { return false; }

  private:
    Step call(Bytes in, std::span<uint8_t> out) {
        in = in.first(std::min(in.size(), longest_span));
        // The C interface lacks a const; the input is not written to.
        stream_.next_in = reinterpret_cast<char*>(const_cast<uint8_t*>(in.data()));
        stream_.avail_in = static_cast<unsigned>(in.size());
        stream_.next_out = reinterpret_cast<char*>(out.data());
        stream_.avail_out = static_cast<unsigned>(out.size());
        const int result = BZ2_bzDecompress(&stream_);
        Step step{in.size() - stream_.avail_in, out.size() - stream_.avail_out, Step::more};
        switch (result) {
            case BZ_OK: return step;
            case BZ_STREAM_END: step.state = Step::end; return step;
            case BZ_MEM_ERROR: return fail(step, SHF_E_NOMEM, "no memory for a block");
            case BZ_DATA_ERROR_MAGIC: return fail(step, SHF_E_FORMAT, "bad stream header");
            case BZ_DATA_ERROR:
                // One code for a wrong CRC and for damage that makes decoding impossible; every
                // block has a CRC, so either way the check of the block failed.
                return fail(step, SHF_E_INTEGRITY, "damaged block or wrong CRC");
            default: return fail(step, SHF_E_INTERNAL, "libbz2 refused the call");
        }
    }

    void close() {
        if (open_) BZ2_bzDecompressEnd(&stream_);
        open_ = false;
    }

    bz_stream stream_{};
    bool open_ = false;
    bool has_block_ = false;  // a block may have come in that was not put out yet
};

}  // namespace

std::unique_ptr<Codec> make_bzip2() {
    return std::make_unique<Bzip2>();
}

std::string bzip2_version() {
    const std::string version = BZ2_bzlibVersion();  // "1.0.8, 13-Jul-2019"
    return "bzip2 " + version.substr(0, version.find(','));
}

}  // namespace shf
