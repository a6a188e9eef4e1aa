#include "codec/codec.h"
#include "codec/frame_walk.h"

#include <lz4.h>
#include <lz4frame.h>

#include <new>

namespace shf {

namespace {

// The LZ4 frame format, "Frame Descriptor": FLG is the byte behind the magic.
constexpr unsigned has_block_check = 0x10, has_content_size = 0x08, has_content_check = 0x04,
                   has_dictionary = 0x01;

// "Data Blocks": the highest bit marks bytes as they are; 0 is the end mark.
FrameWalk::Block read_lz4_block(uint32_t header, const FrameWalk::Layout& layout) {
    if (header == 0) return {0, 0, true};
    return {header & 0x7fffffff, layout.block_check, false};
}

class Lz4 final : public Codec {
  public:
    Lz4() {
        LZ4F_dctx* context = nullptr;
        if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)))
            throw std::bad_alloc();
        context_.reset(context);
    }

    Step begin(Bytes head) override {
        if (head.size() > 3 && head[0] != 0x04)
            return fail({}, SHF_E_UNSUPPORTED, "legacy frame", "compress it again");
        const unsigned flags = head.size() > 4 ? head[4] : 0x40;
        if ((flags & 0xc0) != 0x40)
            return fail({}, SHF_E_UNSUPPORTED, "unknown frame version", "compress it again");
        // liblz4 would decode without it and deliver wrong bytes.
        if ((flags & has_dictionary) != 0)
            return fail({}, SHF_E_UNSUPPORTED, "the frame needs a dictionary",
                        "compress it again without one");
        block_checks_ = (flags & has_block_check) != 0;
        content_check_ = (flags & has_content_check) != 0;
        claimed_ = 0;
        if ((flags & has_content_size) != 0 && head.size() >= 14)
            for (size_t i = 0; i < 8; ++i) claimed_ |= uint64_t{head[6 + i]} << (8 * i);
        walk_.start(
            {(flags & has_content_size) != 0 ? 15U : 7U, 4,
             (flags & has_block_check) != 0 ? 4U : 0U, (flags & has_content_check) != 0 ? 4U : 0U},
            read_lz4_block);
        LZ4F_resetDecompressionContext(context_.get());
        return {};
    }

    Step decode(Bytes in, std::span<uint8_t> out) override {
        const Bytes part = full_ ? in.first(0) : walk_.part(in);
        size_t consumed = part.size(), produced = out.size();
        const size_t result =
            LZ4F_decompress(context_.get(), out.data(), &produced, part.data(), &consumed, nullptr);
        if (LZ4F_isError(result)) return refuse(LZ4F_getErrorName(result));
        Step step{consumed, produced, Step::more};
        walk_.advance(part.first(consumed));
        if (full_ && produced == 0 && result != 0) {
            full_ = false;
            return decode(in, out);
        }
        full_ = produced == out.size();
        if (result == 0) step.state = Step::end;
        // Behind the check of a block, when the library holds nothing of it back.
        const bool block_over = block_checks_ && !full_ && walk_.between_blocks();
        step.verified = result == 0 || block_over || (!block_checks_ && !content_check_);
        return step;
    }

    [[nodiscard]] bool exact() const override { return true; }
    [[nodiscard]] bool checked() const override { return block_checks_ || content_check_; }
    // A block is never larger than what is held back for its check.
    [[nodiscard]] uint64_t claimed_size() const override { return block_checks_ ? 0 : claimed_; }

  private:
    // The numbers of the errors are no part of the stable interface, their names are.
    Step refuse(std::string_view name) {
        if (name == "ERROR_contentChecksum_invalid")
            return fail({}, SHF_E_INTEGRITY, "wrong content checksum");
        if (name == "ERROR_blockChecksum_invalid")
            return fail({}, SHF_E_INTEGRITY, "wrong block checksum");
        if (name == "ERROR_headerChecksum_invalid")
            return fail({}, SHF_E_INTEGRITY, "wrong header checksum");
        if (name == "ERROR_allocation_failed")
            return fail({}, SHF_E_NOMEM, "no memory for a block");
        return fail({}, SHF_E_FORMAT, "damaged frame");
    }

    struct Free {
        void operator()(LZ4F_dctx* context) const { LZ4F_freeDecompressionContext(context); }
    };

    std::unique_ptr<LZ4F_dctx, Free> context_;
    FrameWalk walk_;
    bool block_checks_ = false, content_check_ = false;  // of this frame
    uint64_t claimed_ = 0;
    // The last call filled the span: the library may hold more output of the same part, which has
    // to leave before the next part comes in.
    bool full_ = false;
};

}  // namespace

std::unique_ptr<Codec> make_lz4() {
    return std::make_unique<Lz4>();
}

std::string lz4_version() {
    return std::string("liblz4 ") + LZ4_versionString();
}

}  // namespace shf
