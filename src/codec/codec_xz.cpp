#include "codec/codec.h"

#include <lzma.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>

namespace shf {

namespace {

constexpr const char* damaged_xz = "damaged data or wrong integrity check";

// One stream: header, blocks, index, footer (.xz file format, 2.1). liblzma decodes each of them;
// lzma_stream_decoder() would do so in one, but does not tell where a block is over and its check
// holds. The threaded decoder is never used.
class Xz final : public Codec {
  public:
    // Twice the window holds the dictionary and what liblzma needs beside it.
    explicit Xz(uint64_t max_window) : memory_(2 * max_window) {}
    Xz(const Xz&) = delete;
    Xz& operator=(const Xz&) = delete;
    ~Xz() override {
        lzma_end(&stream_);
        lzma_index_hash_end(index_, nullptr);
    }

    Step begin(Bytes /*head*/) override {
        index_ = lzma_index_hash_init(index_, nullptr);
        if (index_ == nullptr) return fail({}, SHF_E_NOMEM, "no memory for the decoder");
        part_ = Part::header;
        have_ = 0;
        claimed_ = 0;
        return {};
    }

    Step decode(Bytes in, std::span<uint8_t> out) override {
        Step step;
        if (part_ == Part::block) {
            step = decode_block(in, out);
        } else {
            // Parts without output, one after another, up to the next block.
            while (step.state == Step::more && part_ != Part::block) {
                const size_t before = step.consumed;
                const Part part = part_;
                step = pass(step, in.subspan(step.consumed));
                if (step.consumed == before && part_ == part) break;
            }
            step.verified = part_ != Part::block;
        }
        if (!checked()) step.verified = true;
        return step;
    }

    [[nodiscard]] bool exact() const override { return false; }
    [[nodiscard]] bool checked() const override { return flags_.check != LZMA_CHECK_NONE; }
    [[nodiscard]] uint64_t claimed_size() const override { return claimed_; }

  private:
    enum class Part : uint8_t { header, block_header, block, index, footer };

    // Collects a part of `size` bytes. True when all of it is in part_bytes_.
    bool collect(Step& step, Bytes in, size_t size) {
        const size_t count = std::min(in.size(), size - have_);
        std::copy_n(in.begin(), count, part_bytes_.begin() + static_cast<ptrdiff_t>(have_));
        have_ += count;
        step.consumed += count;
        return have_ == size;
    }

    void enter(Part part) {
        part_ = part;
        have_ = 0;
    }

    Step pass(Step step, Bytes in) {
        switch (part_) {
            case Part::header:
                return collect(step, in, LZMA_STREAM_HEADER_SIZE) ? read_header(step) : step;
            case Part::block_header: return pass_block_header(step, in);
            case Part::index: return pass_index(step, in);
            case Part::footer:
                return collect(step, in, LZMA_STREAM_HEADER_SIZE) ? read_footer(step) : step;
            case Part::block: break;
        }
        return step;
    }

    Step read_header(Step step) {
        switch (lzma_stream_header_decode(&flags_, part_bytes_.data())) {
            case LZMA_OK: break;
            case LZMA_FORMAT_ERROR: return fail(step, SHF_E_FORMAT, "bad stream header");
            case LZMA_OPTIONS_ERROR: return unsupported(step);
            default: return fail(step, SHF_E_FORMAT, "damaged stream header");
        }
        if (!lzma_check_is_supported(flags_.check))
            return fail(step, SHF_E_UNSUPPORTED, "unknown type of integrity check",
                        "compress it again");
        enter(Part::block_header);
        return step;
    }

    Step pass_block_header(Step step, Bytes in) {
        if (have_ == 0) {
            if (in.empty()) return step;
            if (in[0] == 0) {  // the index indicator
                enter(Part::index);
                return step;
            }
            header_size_ = lzma_block_header_size_decode(in[0]);
        }
        return collect(step, in, header_size_) ? begin_block(step) : step;
    }

    Step begin_block(Step step) {
        std::array<lzma_filter, LZMA_FILTERS_MAX + 1> filters;
        block_ = {};
        block_.header_size = header_size_;
        block_.check = flags_.check;
        block_.filters = filters.data();
        const lzma_ret result = lzma_block_header_decode(&block_, nullptr, part_bytes_.data());
        if (result != LZMA_OK) return refuse(step, result);
        const uint64_t needed = lzma_raw_decoder_memusage(filters.data());
        lzma_ret begun = LZMA_OPTIONS_ERROR;
        if (needed <= memory_) begun = lzma_block_decoder(&stream_, &block_);
        for (const lzma_filter* filter = filters.data(); filter->id != LZMA_VLI_UNKNOWN; ++filter)
            std::free(filter->options);
        block_.filters = nullptr;
        if (needed > memory_ && needed != UINT64_MAX)
            return fail(step, SHF_E_LIMIT,
                        "the decoder needs " + std::to_string(needed) + " bytes, the limit is " +
                            std::to_string(memory_) + " (twice max_window)",
                        "raise max_window");
        if (begun != LZMA_OK) return refuse(step, begun);
        claimed_ = block_.uncompressed_size == LZMA_VLI_UNKNOWN ? 0 : block_.uncompressed_size;
        enter(Part::block);
        return step;
    }

    Step decode_block(Bytes in, std::span<uint8_t> out) {
        stream_.next_in = in.data();
        stream_.avail_in = in.size();
        stream_.next_out = out.data();
        stream_.avail_out = out.size();
        const lzma_ret result = lzma_code(&stream_, LZMA_RUN);
        Step step{in.size() - stream_.avail_in, out.size() - stream_.avail_out, Step::more};
        // A call that had nothing to do is seen by the caller.
        if (result == LZMA_OK || result == LZMA_BUF_ERROR) return step;
        if (result != LZMA_STREAM_END) return refuse(step, result);
        step.verified = true;
        claimed_ = 0;
        enter(Part::block_header);
        if (lzma_index_hash_append(index_, lzma_block_unpadded_size(&block_),
                                   block_.uncompressed_size) != LZMA_OK)
            return fail(step, SHF_E_INTEGRITY, damaged_xz);
        return step;
    }

    Step pass_index(Step step, Bytes in) {
        if (in.empty()) return step;
        size_t used = 0;
        const lzma_ret result = lzma_index_hash_decode(index_, in.data(), &used, in.size());
        step.consumed += used;
        if (result == LZMA_STREAM_END)
            enter(Part::footer);
        else if (result != LZMA_OK)
            return refuse(step, result);
        return step;
    }

    Step read_footer(Step step) {
        lzma_stream_flags footer;
        if (lzma_stream_footer_decode(&footer, part_bytes_.data()) != LZMA_OK ||
            footer.backward_size != lzma_index_hash_size(index_) ||
            lzma_stream_flags_compare(&flags_, &footer) != LZMA_OK)
            return fail(step, SHF_E_INTEGRITY, damaged_xz);
        step.state = Step::end;
        return step;
    }

    Step unsupported(Step step) {
        return fail(step, SHF_E_UNSUPPORTED, "unknown filter or header option",
                    "compress it again");
    }

    Step refuse(Step step, lzma_ret result) {
        switch (result) {
            case LZMA_MEM_ERROR: return fail(step, SHF_E_NOMEM, "no memory for the dictionary");
            case LZMA_OPTIONS_ERROR: return unsupported(step);
            // liblzma has one code for a wrong check and for damage that makes decoding impossible.
            case LZMA_DATA_ERROR: return fail(step, SHF_E_INTEGRITY, damaged_xz);
            default: return fail(step, SHF_E_INTERNAL, "liblzma refused the call");
        }
    }

    uint64_t memory_;
    lzma_stream stream_ = LZMA_STREAM_INIT;  // decodes the block
    lzma_index_hash* index_ = nullptr;       // of the blocks so far
    lzma_stream_flags flags_{};
    lzma_block block_{};
    Part part_ = Part::header;
    uint32_t header_size_ = 0;  // of the block
    size_t have_ = 0;           // bytes in part_bytes_
    uint64_t claimed_ = 0;
    std::array<uint8_t, LZMA_BLOCK_HEADER_SIZE_MAX> part_bytes_{};
};

}  // namespace

std::unique_ptr<Codec> make_xz(uint64_t max_window) {
    return std::make_unique<Xz>(max_window);
}

std::string xz_version() {
    return std::string("liblzma ") + lzma_version_string();
}

}  // namespace shf
