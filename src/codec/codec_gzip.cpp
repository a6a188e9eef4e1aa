#include "codec/codec.h"

#include <algorithm>
#include <cstring>
#include <new>

#include <zlib.h>

#ifdef SHF_HAVE_ISAL
#include <isa-l.h>
#endif

namespace shf {

namespace {

// RFC 1952, 2.3.1.2: "Reserved FLG bits must be zero". ISA-L does not look at them.
constexpr uint8_t reserved_flags = 0xe0;

class Gzip : public Codec {
  public:
    Step begin(Bytes head) final {
        if (head.size() > 3 && (head[3] & reserved_flags) != 0)
            return fail({}, SHF_E_FORMAT, "reserved flag bits are set");
        return reset();
    }
    [[nodiscard]] bool exact() const final { return true; }

  protected:
    virtual Step reset() = 0;
};

class Zlib : public Gzip {
  public:
    // With borders it is the one way to find them: ISA-L does not stop between blocks.
    explicit Zlib(bool with_borders) : flush_(with_borders ? Z_BLOCK : Z_NO_FLUSH) {}
    Zlib(const Zlib&) = delete;
    Zlib& operator=(const Zlib&) = delete;
    ~Zlib() override {
        if (open_) inflateEnd(&stream_);
    }

    Step decode(Bytes in, std::span<uint8_t> out) override {
        const size_t in_size = std::min(in.size(), longest_span);
        const size_t out_size = std::min(out.size(), longest_span);
        stream_.next_in = const_cast<Bytef*>(in.data());  // not written to
        stream_.avail_in = static_cast<uInt>(in_size);
        stream_.next_out = out.data();
        stream_.avail_out = static_cast<uInt>(out_size);
        const int result = inflate(&stream_, flush_);
        Step step{in_size - stream_.avail_in, out_size - stream_.avail_out, Step::more};
        switch (result) {
            case Z_OK:
            case Z_BUF_ERROR: return step;  // a call that had nothing to do, seen by the caller
            case Z_STREAM_END: step.state = Step::end; return step;
            case Z_MEM_ERROR: return fail(step, SHF_E_NOMEM, "no memory for the window");
            case Z_DATA_ERROR: break;
            default: return fail(step, SHF_E_INTERNAL, "zlib refused the call");
        }
        // Only the message of zlib distinguishes a wrong check from damaged data.
        const std::string_view cause = stream_.msg != nullptr ? stream_.msg : "";
        if (cause == "incorrect data check" || cause == "incorrect length check")
            return fail(step, SHF_E_INTEGRITY, "wrong CRC-32 or length");
        if (cause == "header crc mismatch") return fail(step, SHF_E_INTEGRITY, "wrong header CRC");
        return fail(step, SHF_E_FORMAT, "damaged deflate data");
    }

    // zlib.h, inflate(): bit 7 of data_type says that a block ended or the header did, bit 6 that
    // the block was the last one.
    [[nodiscard]] std::optional<unsigned> border() const override {
        const auto type = static_cast<unsigned>(stream_.data_type);
        if (flush_ != Z_BLOCK || (type & 0xc0) != 0x80) return std::nullopt;
        return type & 7;
    }
    [[nodiscard]] std::vector<uint8_t> window() override {
        std::vector<uint8_t> window(size_t{1} << MAX_WBITS);
        uInt size = 0;
        inflateGetDictionary(&stream_, window.data(), &size);
        window.resize(size);
        return window;
    }

  private:
    Step reset() override {
        constexpr int gzip_only = 16 + MAX_WBITS;
        if (!open_ && inflateInit2(&stream_, gzip_only) != Z_OK)
            return fail({}, SHF_E_NOMEM, "no memory for the decoder");
        open_ = true;
        inflateReset(&stream_);
        return {};
    }

    const int flush_;
    z_stream stream_{};
    bool open_ = false;
};

#ifdef SHF_HAVE_ISAL

// ISA-L 2.30 seen from here: isal_inflate() parses the header by itself, but forgets the flags when
// a header comes in several pieces, so the header is read with isal_read_gzip_header() and one
// isal_gzip_header per member. isal_inflate() then checks CRC-32 and ISIZE, in pieces too, and
// leaves next_in just behind the trailer. It checks no arguments: all lengths are bounded here.
class Isal final : public Gzip {
  public:
    Step decode(Bytes in, std::span<uint8_t> out) override {
        if (broken_ != ISAL_DECOMP_OK) return drain({}, out);
        inflate_state& state = *state_;
        const size_t in_size = std::min(in.size(), longest_span);
        const size_t out_size = std::min(out.size(), longest_span);
        state.next_in = const_cast<uint8_t*>(in.data());  // not written to
        state.avail_in = static_cast<uint32_t>(in_size);
        state.next_out = out.data();
        state.avail_out = static_cast<uint32_t>(out_size);

        int result = ISAL_DECOMP_OK;
        if (in_header_) {
            result = isal_read_gzip_header(&state, &header_);
            in_header_ = result != ISAL_DECOMP_OK;
        }
        if (!in_header_) result = isal_inflate(&state);

        // The counters beside these pointers are wrong after some faults: avail_in may be below 0.
        Step step{0, static_cast<size_t>(state.next_out - out.data()), Step::more};
        if (result < 0) {
            broken_ = result;
            return drain(step, out.subspan(step.produced));
        }
        step.consumed = static_cast<size_t>(state.next_in - in.data());
        if (!in_header_ && state.block_state == ISAL_BLOCK_FINISH) step.state = Step::end;
        return step;
    }

  private:
    Step reset() override {
        isal_inflate_init(state_.get());
        state_->crc_flag = ISAL_GZIP;
        isal_gzip_header_init(&header_);
        in_header_ = true;
        broken_ = ISAL_DECOMP_OK;
        return {};
    }

    // ISA-L decodes ahead into its own buffer and reports a fault as soon as it meets it; what lies
    // in the buffer comes before the fault.
    Step drain(Step step, std::span<uint8_t> out) {
        inflate_state& state = *state_;
        const auto pending = static_cast<size_t>(state.tmp_out_valid - state.tmp_out_processed);
        const size_t count = std::min(out.size(), pending);
        if (count > 0)
            std::memcpy(out.data(), state.tmp_out_buffer + state.tmp_out_processed, count);
        state.tmp_out_processed += static_cast<int32_t>(count);
        step.produced += count;
        if (count < pending) return step;
        switch (broken_) {
            case ISAL_INCORRECT_CHECKSUM:
                return fail(step, SHF_E_INTEGRITY,
                            in_header_ ? "wrong header CRC" : "wrong CRC-32 or length");
            case ISAL_INVALID_WRAPPER:
            case ISAL_UNSUPPORTED_METHOD: return fail(step, SHF_E_FORMAT, "bad member header");
            default: return fail(step, SHF_E_FORMAT, "damaged deflate data");
        }
    }

    std::unique_ptr<inflate_state> state_ = std::make_unique<inflate_state>();
    isal_gzip_header header_{};
    bool in_header_ = true;
    int broken_ = ISAL_DECOMP_OK;
};

// The rest of a member, from a border on. Behind its last block is a trailer of eight bytes.
class IsalRest final : public Codec {
  public:
    IsalRest(unsigned bits, uint8_t byte, Bytes window) {
        isal_inflate_init(state_.get());
        state_->crc_flag = ISAL_DEFLATE;
        if (!window.empty())
            isal_inflate_set_dict(state_.get(), const_cast<uint8_t*>(window.data()),
                                  static_cast<uint32_t>(window.size()));
        state_->read_in = bits == 0 ? 0 : byte >> (8 - bits);
        state_->read_in_length = static_cast<int32_t>(bits);
    }
    Step begin(Bytes /*head*/) override { return {}; }
    Step decode(Bytes in, std::span<uint8_t> out) override {
        Step step;
        if (!in_trailer_) {
            inflate_state& state = *state_;
            const size_t in_size = std::min(in.size(), longest_span);
            state.next_in = const_cast<uint8_t*>(in.data());  // not written to
            state.avail_in = static_cast<uint32_t>(in_size);
            state.next_out = out.data();
            state.avail_out = static_cast<uint32_t>(std::min(out.size(), longest_span));
            const int result = isal_inflate(&state);
            step.produced = static_cast<size_t>(state.next_out - out.data());
            if (result < 0) return fail(step, SHF_E_FORMAT, "damaged deflate data");
            step.consumed = static_cast<size_t>(state.next_in - in.data());
            if (state.block_state != ISAL_BLOCK_FINISH) return step;
            in_trailer_ = true;
            // Whole bytes that it has taken and not used belong to the trailer.
            left_ -= std::min<size_t>(left_, static_cast<size_t>(state.read_in_length) / 8);
        }
        const size_t count = std::min(left_, in.size() - step.consumed);
        left_ -= count;
        step.consumed += count;
        if (left_ == 0) step.state = Step::end;
        return step;
    }
    [[nodiscard]] bool exact() const override { return false; }

  private:
    const std::unique_ptr<inflate_state> state_ = std::make_unique<inflate_state>();
    bool in_trailer_ = false;
    size_t left_ = 8;
};

using Inflater = Isal;
using InflaterRest = IsalRest;

#else

// The rest of a member, from a border on. Behind its last block is a trailer of eight bytes.
class ZlibRest final : public Codec {
  public:
    ZlibRest(unsigned bits, uint8_t byte, Bytes window) {
        if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
        if (bits > 0) inflatePrime(&stream_, static_cast<int>(bits), byte >> (8 - bits));
        inflateSetDictionary(&stream_, window.data(), static_cast<uInt>(window.size()));
    }
    ZlibRest(const ZlibRest&) = delete;
    ZlibRest& operator=(const ZlibRest&) = delete;
    ~ZlibRest() override { inflateEnd(&stream_); }

    Step begin(Bytes /*head*/) override { return {}; }
    Step decode(Bytes in, std::span<uint8_t> out) override {
        Step step;
        if (!in_trailer_) {
            const size_t in_size = std::min(in.size(), longest_span);
            const size_t out_size = std::min(out.size(), longest_span);
            stream_.next_in = const_cast<Bytef*>(in.data());  // not written to
            stream_.avail_in = static_cast<uInt>(in_size);
            stream_.next_out = out.data();
            stream_.avail_out = static_cast<uInt>(out_size);
            const int result = inflate(&stream_, Z_NO_FLUSH);
            step.consumed = in_size - stream_.avail_in;
            step.produced = out_size - stream_.avail_out;
            if (result == Z_MEM_ERROR) return fail(step, SHF_E_NOMEM, "no memory for the window");
            if (result != Z_OK && result != Z_BUF_ERROR && result != Z_STREAM_END)
                return fail(step, SHF_E_FORMAT, "damaged deflate data");
            if (result != Z_STREAM_END) return step;
            in_trailer_ = true;
        }
        const size_t count = std::min(left_, in.size() - step.consumed);
        left_ -= count;
        step.consumed += count;
        if (left_ == 0) step.state = Step::end;
        return step;
    }
    [[nodiscard]] bool exact() const override { return false; }

  private:
    z_stream stream_{};
    bool in_trailer_ = false;
    size_t left_ = 8;
};

class Inflater final : public Zlib {
  public:
    Inflater() : Zlib(false) {}
};
using InflaterRest = ZlibRest;

#endif

}  // namespace

std::unique_ptr<Codec> make_gzip() {
    return std::make_unique<Inflater>();
}

std::unique_ptr<Codec> make_gzip_with_borders() {
    return std::make_unique<Zlib>(true);
}

std::unique_ptr<Codec> make_gzip_rest(unsigned bits, uint8_t byte, Bytes window) {
    return std::make_unique<InflaterRest>(bits, byte, window);
}

std::string gzip_version() {
#ifdef SHF_HAVE_ISAL
    // ISA-L reports its version only at compile time.
    return "isa-l " + std::to_string(ISAL_MAJOR_VERSION) + "." +
           std::to_string(ISAL_MINOR_VERSION) + "." + std::to_string(ISAL_PATCH_VERSION);
#else
    return std::string("zlib ") + zlibVersion();
#endif
}

}  // namespace shf
