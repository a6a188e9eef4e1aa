#include "codec/codec.h"
#include "core/checksum.h"
#include "core/little_endian.h"

#include <lzma.h>

#include <algorithm>
#include <array>

namespace shf {

namespace {

constexpr const char* damaged_lzip = "damaged data or wrong CRC";

// One member of lzip (its manual, "File format"): a header, an LZMA stream with its end mark, and a
// trailer with CRC, size of the data and size of the member. liblzma decodes the stream; it knows
// the whole format only from version 5.4 on.
class Lzip final : public Codec {
  public:
    // Twice the window holds the dictionary and what liblzma needs beside it.
    explicit Lzip(uint64_t max_window) : memory_(2 * max_window) {}
    Lzip(const Lzip&) = delete;
    Lzip& operator=(const Lzip&) = delete;
    ~Lzip() override { lzma_end(&stream_); }

    Step begin(Bytes /*head*/) override {
        part_ = Part::header;
        have_ = 0;
        crc_ = 0;
        data_size_ = member_size_ = 0;
        return {};
    }

    Step decode(Bytes in, std::span<uint8_t> out) override {
        Step step;
        if (part_ == Part::header) {
            if (!collect(step, in, header_size)) return step;
            step = begin_stream(step);
        } else if (part_ == Part::stream) {
            step = decode_stream(in, out);
        } else if (collect(step, in, trailer_size)) {
            step = compare_trailer(step);
        }
        return step;
    }

    [[nodiscard]] bool exact() const override { return true; }

  private:
    static constexpr size_t header_size = 6, trailer_size = 20;

    enum class Part : uint8_t { header, stream, trailer };

    // Collects a part of `size` bytes. True when all of it is in part_bytes_.
    bool collect(Step& step, Bytes in, size_t size) {
        const size_t count = std::min(in.size(), size - have_);
        std::copy_n(in.begin(), count, part_bytes_.begin() + static_cast<ptrdiff_t>(have_));
        have_ += count;
        step.consumed += count;
        member_size_ += count;
        return have_ == size;
    }

    Step begin_stream(Step step) {
        // The base 2 logarithm of a size, and how many sixteenths of it to take away.
        const unsigned log = part_bytes_[5] & 0x1f;
        if (log < 12 || log > 29) return fail(step, SHF_E_FORMAT, "bad dictionary size");
        const uint32_t base = uint32_t{1} << log;
        lzma_options_lzma options{};
        options.dict_size = std::max<uint32_t>(base - base / 16 * (part_bytes_[5] >> 5), 4096);
        options.lc = LZMA_LC_DEFAULT;
        options.lp = LZMA_LP_DEFAULT;
        options.pb = LZMA_PB_DEFAULT;
        const lzma_filter filters[] = {{LZMA_FILTER_LZMA1, &options}, {LZMA_VLI_UNKNOWN, nullptr}};
        if (const uint64_t needed = lzma_raw_decoder_memusage(filters); needed > memory_)
            return fail(step, SHF_E_LIMIT,
                        "the decoder needs " + std::to_string(needed) + " bytes, the limit is " +
                            std::to_string(memory_) + " (twice max_window)",
                        "raise max_window");
        switch (lzma_raw_decoder(&stream_, filters)) {
            case LZMA_OK: break;
            case LZMA_MEM_ERROR: return fail(step, SHF_E_NOMEM, "no memory for the dictionary");
            default: return fail(step, SHF_E_INTERNAL, "liblzma refused the call");
        }
        enter(Part::stream);
        return step;
    }

    Step decode_stream(Bytes in, std::span<uint8_t> out) {
        stream_.next_in = in.data();
        stream_.avail_in = in.size();
        stream_.next_out = out.data();
        stream_.avail_out = out.size();
        const lzma_ret result = lzma_code(&stream_, LZMA_RUN);
        const Step step{in.size() - stream_.avail_in, out.size() - stream_.avail_out, Step::more};
        crc_ = crc32(out.first(step.produced), crc_);
        data_size_ += step.produced;
        member_size_ += step.consumed;
        switch (result) {
            case LZMA_OK:
            case LZMA_BUF_ERROR:
                return step;  // a call that had nothing to do is seen by the caller
            case LZMA_STREAM_END: enter(Part::trailer); return step;
            case LZMA_MEM_ERROR: return fail(step, SHF_E_NOMEM, "no memory for the dictionary");
            case LZMA_DATA_ERROR: return fail(step, SHF_E_INTEGRITY, damaged_lzip);
            default: return fail(step, SHF_E_INTERNAL, "liblzma refused the call");
        }
    }

    Step compare_trailer(Step step) {
        if (le32(part_bytes_.data()) != crc_ || le64(&part_bytes_[4]) != data_size_ ||
            le64(&part_bytes_[12]) != member_size_)
            return fail(step, SHF_E_INTEGRITY, damaged_lzip);
        step.state = Step::end;
        return step;
    }

    void enter(Part part) {
        part_ = part;
        have_ = 0;
    }

    uint64_t memory_;
    lzma_stream stream_ = LZMA_STREAM_INIT;
    Part part_ = Part::header;
    uint32_t crc_ = 0;
    uint64_t data_size_ = 0, member_size_ = 0;
    size_t have_ = 0;  // bytes in part_bytes_
    std::array<uint8_t, trailer_size> part_bytes_{};
};

}  // namespace

std::unique_ptr<Codec> make_lzip(uint64_t max_window) {
    return std::make_unique<Lzip>(max_window);
}

}  // namespace shf
