#include "codec/filter.h"

#include "codec/codec.h"
#include "codec/decode_points.h"
#include "codec/held_output.h"
#include "codec/input_block.h"
#include "codec/magic.h"
#include "core/error.h"
#include "core/opening.h"
#include "core/options.h"

#include <algorithm>
#include <array>
#include <exception>
#include <new>

namespace shf {

namespace {

// max_ratio starts here: small files may be denser (docs/rules.md, limits).
constexpr uint64_t ratio_start = uint64_t{64} << 20;
// Ratios are compared when the output has a multiple of this size, so that the fault has a place.
constexpr uint64_t ratio_step = uint64_t{1} << 20;
// RFC 1951 codes 258 bytes in no less than 2 bits.
constexpr uint64_t deflate_ratio = 1032;
// A frame or block of up to this size is verified before any byte of it is delivered (D5). Larger
// ones would need memory for all of it, and would keep the reader waiting.
constexpr uint64_t largest_held = uint64_t{8} << 20;

// The loop over frames. Stages follow one another as
// detect -> plain, or detect -> boundary -> (frame or skip -> boundary)... -> junk or ended.
class Filter final : public Sequential {
  public:
    // `recorder` may be NULL.
    Filter(std::unique_ptr<Sequential> input, const Options& options, FilterReport& report,
           PointRecorder* recorder)
        : input_(std::move(input)), options_(options), report_(report), recorder_(recorder) {}

    size_t read(std::span<uint8_t> out) override {
        if (failure_) std::rethrow_exception(failure_);
        if (out.empty()) return 0;
        try {
            const size_t count = advance(out);
            if (recorder_ && stage_ != Stage::plain) recorder_->bytes(out.first(count));
            return count;
        } catch (const std::bad_alloc&) {
            failure_ =
                std::make_exception_ptr(fault(SHF_E_NOMEM, "no memory for a decompressor", {}));
        } catch (const Error& error) {
            if (ends_call(error.code())) throw;  // the next call resumes
            failure_ = std::current_exception();
        } catch (...) {
            failure_ = std::current_exception();
        }
        std::rethrow_exception(failure_);
    }

    // Only where nothing is decompressed, and no byte is held that comes first.
    bool skip(uint64_t size) override {
        return stage_ == Stage::plain && input_.available().empty() && input_.source().skip(size);
    }
    bool ready() override {
        return stage_ == Stage::ended || failure_ || output_.has_released() ||
               input_.source().ready();
    }
    void finish() override { input_.source().finish(); }

  private:
    enum class Stage : uint8_t { detect, plain, boundary, frame, skip, junk, ended };

    size_t advance(std::span<uint8_t> out) {
        for (;;) {
            size_t count = output_.take(out);
            if (count > 0) return count;
            switch (stage_) {
                case Stage::detect: count = detect(out); break;
                case Stage::plain: return read_plain(out);
                case Stage::boundary: pass_boundary(); break;
                case Stage::frame: count = decode(out); break;
                case Stage::skip: pass_skippable(); break;
                case Stage::junk: drain(); break;
                case Stage::ended: return 0;
            }
            if (count > 0) return count;
        }
    }

    // Looks at the first bytes. They are read into the caller's span, where they stay when the
    // input is not compressed: no copy, and the reads that follow stay aligned. Returns their count
    // then.
    size_t detect(std::span<uint8_t> out) {
        std::array<uint8_t, magic_size> small;
        const bool direct = out.size() >= small.size();
        const std::span<uint8_t> target =
            direct ? out.first(std::min(out.size(), InputBlock::capacity)) : std::span(small);
        size_t count = first_size_;
        std::copy_n(first_.begin(), count, target.begin());
        while (count < magic_size) {
            const size_t more = input_.source().read(target.subspan(count));
            if (more == 0) break;
            // For the next call, if this one ends before they are enough.
            first_size_ = std::min(count + more, magic_size);
            std::copy_n(target.begin(), first_size_, first_.begin());
            count += more;
        }
        const Bytes head = target.first(count);
        const CodecMagic* magic = find_magic(head);
        if (magic == nullptr && count < magic_size && cut_magic(head, {})) throw cut(count);
        if (magic == nullptr && direct) {
            stage_ = Stage::plain;
            return count;
        }
        input_.push_front(head);
        if (magic == nullptr) {
            stage_ = Stage::plain;
            return 0;
        }
        stage_ = Stage::boundary;
        name_ = report_.codec = magic->codec;
        input_.fill();  // or the first block would have the size of the caller's span
        return 0;
    }

    size_t read_plain(std::span<uint8_t> out) {
        const Bytes held = input_.available();
        if (held.empty()) return input_.source().read(out);
        const size_t count = std::min(held.size(), out.size());
        std::copy_n(held.begin(), count, out.begin());
        input_.consume(count);
        return count;
    }

    // Between frames: zeros, another frame, the end, or junk (rules D3 and D4).
    void pass_boundary() {
        const Bytes head = skip_zeros();
        if (head.empty()) {
            finish_output();
            return;
        }
        const CodecMagic* magic = find_magic(head);
        if (magic == nullptr || !continues(*magic)) {
            if (magic == nullptr && head.size() < magic_size && may_continue(head))
                throw cut(input_.position() + head.size());
            pass_junk();
            return;
        }
        // The .xz file format, 2.2: padding between streams is a multiple of four bytes.
        if (name_ == "xz" && padding_ % 4 != 0)
            throw fault(SHF_E_FORMAT, "xz stream padding of " + std::to_string(padding_) + " bytes",
                        "compress it again, or use on_error=skip_shard");
        padding_ = 0;
        frame_start_ = input_.position();
        if (magic->skippable)
            begin_skip(head);
        else
            begin_frame(*magic, head);
    }

    // Whether a frame with this magic may follow the frames before it. Skippable frames are the
    // same in zstd and lz4 (find_magic says zstd), so the first frame with content decides.
    [[nodiscard]] bool continues(const CodecMagic& magic) const {
        if (magic.skippable) return name_ == "zstd" || name_ == "lz4";
        return name_ == magic.codec || (undecided() && magic.codec == std::string_view("lz4"));
    }
    [[nodiscard]] bool may_continue(Bytes cut_head) const {
        return cut_magic(cut_head, name_) || (undecided() && cut_magic(cut_head, "lz4"));
    }
    [[nodiscard]] bool undecided() const { return name_ == "zstd" && !codec_; }

    // Passes zeros and returns at least frame_head bytes behind them, fewer only at the end.
    Bytes skip_zeros() {
        for (;;) {
            const Bytes held = input_.available();
            const auto other =
                std::find_if(held.begin(), held.end(), [](uint8_t byte) { return byte != 0; });
            const auto zeros = static_cast<size_t>(other - held.begin());
            input_.consume(zeros);
            padding_ += zeros;
            if (held.size() - zeros >= frame_head || !input_.fill()) return input_.available();
        }
    }

    void begin_frame(const CodecMagic& magic, Bytes head) {
        if (!codec_) {
            name_ = report_.codec = magic.codec;
            codec_ = recorder_ && name_ == "gzip" ? make_gzip_with_borders()
                                                  : make_codec(name_, options_);
        }
        if (recorder_) recorder_->frame(frame_start_, out_total_);
        stage_ = Stage::frame;
        stalls_ = 0;
        if (codec_->begin(head).state == Step::failed) throw codec_fault();
    }

    // RFC 8878, 3.1.2, and "Skippable Frames" of the LZ4 frame format: magic, length, content.
    void begin_skip(Bytes head) {
        if (head.size() < 8) throw cut(input_.position() + head.size());
        skip_left_ = 8;
        for (size_t i = 0; i < 4; ++i) skip_left_ += uint64_t{head[4 + i]} << (8 * i);
        stage_ = Stage::skip;
    }

    void pass_skippable() {
        const uint64_t count = std::min<uint64_t>(skip_left_, input_.available().size());
        input_.consume(static_cast<size_t>(count));
        skip_left_ -= count;
        if (skip_left_ == 0)
            stage_ = Stage::boundary;
        else if (!input_.fill())
            throw cut(input_.position());
    }

    void pass_junk() {
        if (options_.trailing != Trailing::ignore)
            throw fault(SHF_E_FORMAT,
                        "byte " + std::to_string(input_.position()) +
                            " of the compressed data, behind a frame, starts no other " +
                            std::string(name_) + " frame",
                        "set trailing=ignore");
        report_.trailing = true;
        stage_ = Stage::junk;
    }

    void drain() {
        do input_.consume(input_.available().size());
        while (input_.fill());
        finish_output();
    }

    // Decodes straight into `out` what may be delivered at once, else into output_.
    size_t decode(std::span<uint8_t> out) {
        const bool straight = passing() && codec_->exact() && output_.held() == 0;
        const Step step = decode_into(straight ? out : output_.room());
        if (step.state == Step::failed) {
            if (straight && step.produced > 0) {
                out_total_ += step.produced;
                failure_ = std::make_exception_ptr(codec_fault());  // after the good bytes
                return step.produced;
            }
            throw codec_fault();
        }
        if (straight) {
            out_total_ += step.produced;
            output_.shrink();  // the rest of this frame, most often of the shard, passes by it
        } else {
            output_.add(step.produced);
            const bool exact = codec_->exact() || output_.held() % HeldOutput::piece == 0;
            if (step.verified || (passing() && exact)) release();
        }
        if (step.verified) {
            report_.verified = out_total_;
            passing_ = false;
        }
        return straight ? step.produced : 0;
    }

    // Whether bytes need not wait for their check: there is none, it is too far away, or the reader
    // goes by `verified` (option resync).
    [[nodiscard]] bool passing() {
        if (!passing_)
            passing_ = output_.held() > largest_held || codec_->claimed_size() > largest_held;
        return passing_ || options_.resync || !codec_->checked();
    }

    void release() {
        out_total_ += output_.held();
        output_.release();
    }

    Step decode_into(std::span<uint8_t> out) {
        const uint64_t decoded = out_total_ + output_.held();
        check_ratio(decoded);
        const uint64_t room = ratio_step - decoded % ratio_step;
        out = out.first(static_cast<size_t>(std::min<uint64_t>(out.size(), room)));
        Step step = codec_->decode(input_.available(), out);
        input_.consume(step.consumed);
        if (step.state == Step::failed && !codec_->exact()) return step;
        look_at_head(out.first(step.produced));
        if (step.state == Step::failed) return step;
        if (recorder_ && step.state == Step::more) record_border(decoded + step.produced);
        if (step.state == Step::end) {
            stage_ = Stage::boundary;
            step.verified = true;
        } else if (step.consumed > 0 || step.produced > 0) {
            stalls_ = 0;
        } else if (!input_.available().empty()) {
            if (++stalls_ == 2) throw fault(SHF_E_FORMAT, "the decoder makes no progress");
        } else if (!input_.fill()) {
            if (!codec_->may_end()) throw cut(input_.position());
            stage_ = Stage::boundary;
        }
        return step;
    }

    void record_border(uint64_t offset) {
        if (!recorder_->wants_block(offset)) return;
        if (const auto bits = codec_->border())
            recorder_->block(8 * input_.position() - *bits, offset, codec_->window());
    }

    void check_ratio(uint64_t decoded) const {
        if (decoded % ratio_step != 0) return;
        const uint64_t in_total = input_.position();
        if (name_ == "gzip") {
            if (decoded > deflate_ratio * in_total + ratio_step)
                throw fault(SHF_E_LIMIT, "gzip output is over 1032 times the input");
        } else if (decoded > ratio_start && decoded / options_.max_ratio > in_total) {
            throw fault(SHF_E_LIMIT,
                        std::to_string(in_total) + " compressed bytes gave " +
                            std::to_string(decoded) + ", max_ratio is " +
                            std::to_string(options_.max_ratio),
                        "raise max_ratio");
        }
    }

    // One layer only (D7): keeps the first bytes of the output until they can be judged.
    void look_at_head(Bytes produced) {
        if (head_size_ == magic_size) return;
        const size_t count = std::min(magic_size - head_size_, produced.size());
        std::copy_n(produced.begin(), count, head_.begin() + static_cast<ptrdiff_t>(head_size_));
        head_size_ += count;
        if (head_size_ == magic_size) refuse_nested();
    }

    void finish_output() {
        if (head_size_ < magic_size) refuse_nested();
        stage_ = Stage::ended;
    }

    void refuse_nested() const {
        if (const char* nested = codec_of_magic(Bytes(head_).first(head_size_)))
            throw Error(SHF_E_UNSUPPORTED,
                        std::string(nested) + " data inside " + std::string(name_) +
                            ": only one layer is read",
                        "compress it once", 0);
    }

    // Every fault is at its offset in the output, which no cut of input or output can move.
    [[nodiscard]] Error fault(int32_t code, std::string cause,
                              std::string help = copy_again) const {
        return Error(code, std::move(cause), std::move(help), out_total_);
    }

    [[nodiscard]] Error codec_fault() const {
        const Fault inner = codec_->fault(copy_again);
        return fault(inner.code,
                     std::string(name_) + ": " + inner.cause +
                         ", in the frame that starts at byte " + std::to_string(frame_start_) +
                         " of the compressed data",
                     inner.help);
    }

    [[nodiscard]] Error cut(uint64_t size) const {
        return fault(SHF_E_TRUNCATED, "the compressed data ends in the middle of a frame, after " +
                                          std::to_string(size) + " bytes");
    }

    InputBlock input_;
    const Options& options_;
    FilterReport& report_;
    PointRecorder* const recorder_;
    std::exception_ptr failure_;
    Stage stage_ = Stage::detect;

    std::string_view name_;         // of the codec, before the first frame with content a guess
    std::unique_ptr<Codec> codec_;  // from the first frame with content
    unsigned stalls_ = 0;           // calls in a row without progress (D6)
    uint64_t frame_start_ = 0;      // in the input
    uint64_t padding_ = 0;          // zeros since the last frame
    uint64_t skip_left_ = 0;
    HeldOutput output_;       // decoded, and not verified yet or no room for it in a call
    bool passing_ = false;    // the rest of this frame or block is delivered before its check
    uint64_t out_total_ = 0;  // bytes delivered or released
    std::array<uint8_t, magic_size> first_{};  // bytes of the input, before the stage is known
    size_t first_size_ = 0;
    std::array<uint8_t, magic_size> head_{};  // of the output
    size_t head_size_ = 0;
};

}  // namespace

std::unique_ptr<Sequential> open_filter(std::unique_ptr<Sequential> input, const Options& options,
                                        FilterReport& report) {
    return std::make_unique<Filter>(std::move(input), options, report, nullptr);
}

std::unique_ptr<Sequential> open_recorded_filter(std::unique_ptr<Sequential> input,
                                                 const Options& options, FilterReport& report,
                                                 PointRecorder& recorder) {
    return std::make_unique<Filter>(std::move(input), options, report, &recorder);
}

std::unique_ptr<Codec> make_codec(std::string_view name, const Options& options) {
    if (name == "gzip") return make_gzip();
    if (name == "bzip2") return make_bzip2();
    if (name == "xz") return make_xz(options.max_window);
    if (name == "zstd") return make_zstd(options.max_window);
    if (name == "lzip") return make_lzip(options.max_window);
    if (name == "compress") return make_compress();
    return make_lz4();
}

const char* codec_version(std::string_view codec) {
    static const std::string versions[] = {gzip_version(),
                                           bzip2_version(),
                                           xz_version(),
                                           zstd_version(),
                                           lz4_version(),
                                           xz_version(),
                                           "shardfeed " SHF_VERSION_STRING};
    static constexpr std::string_view names[] = {"gzip", "bzip2", "xz",      "zstd",
                                                 "lz4",  "lzip",  "compress"};
    for (size_t i = 0; i < std::size(names); ++i)
        if (codec == names[i]) return versions[i].c_str();
    return nullptr;
}

}  // namespace shf
