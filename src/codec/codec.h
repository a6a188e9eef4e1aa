// One compressed frame (gzip or lzip member, bzip2, xz or compress stream, zstd or lz4 frame)
// behind one interface. What several frames, padding, junk, limits and progress mean is decided
// once, in filter.cpp.
//
// Minimum versions: ISA-L 2.22 (resumable gzip trailer) or zlib 1.2.11; bzip2 1.0.8
// (CVE-2019-12900); liblzma 5.2.5, whose threaded decoder (CVE-2025-31115) is never used; libzstd
// 1.4.0 (stable advanced API); liblz4 1.8.0 (LZ4F_resetDecompressionContext).
#pragma once

#include "core/error.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

using Bytes = std::span<const uint8_t>;

struct Step {
    enum State : uint8_t { more, end, failed };

    size_t consumed = 0;
    size_t produced = 0;
    State state = more;  // end: the frame is complete and its checks hold
    // All bytes of the frame that came so far, with those of this step, are covered by a check that
    // holds, or the frame has no check over them. Implied by end.
    bool verified = false;
};

class Codec {
  public:
    virtual ~Codec() = default;
    // Starts a frame. `head` is its start: frame_head bytes of it, or all that the input has.
    // Consumes nothing.
    virtual Step begin(Bytes head) = 0;
    // Decodes the next bytes of the frame. `out` is not empty. A call that uses and makes nothing
    // waits for more input.
    virtual Step decode(Bytes in, std::span<uint8_t> out) = 0;
    // Whether the bytes before a fault are the same however the frame is cut into calls: `produced`
    // counts all of them, also after `failed`. Otherwise nothing that comes with `failed` is to be
    // used: libbz2 loses count of it, and a branch filter of liblzma has not converted it yet.
    [[nodiscard]] virtual bool exact() const = 0;
    // Whether the frame has a check over its bytes at all.
    [[nodiscard]] virtual bool checked() const { return true; }
    // Whether the frame has no end mark, and may end where the input does, behind the bytes so far.
    [[nodiscard]] virtual bool may_end() const { return false; }
    // How many bytes the frame or block says that it has, 0 where it does not say. A claim.
    [[nodiscard]] virtual uint64_t claimed_size() const { return 0; }
    // After a call: how many bits of the last byte that was consumed belong to a deflate block that
    // begins there, in a decoder that stops where blocks begin; window() is what it may refer to.
    [[nodiscard]] virtual std::optional<unsigned> border() const { return std::nullopt; }
    [[nodiscard]] virtual std::vector<uint8_t> window() { return {}; }
    // Why the last call failed, with this help where the bytes are damaged.
    [[nodiscard]] Fault fault(const char* damage_help) const {
        Fault fault = fault_;
        if (fault.code == SHF_E_FORMAT || fault.code == SHF_E_INTEGRITY) fault.help = damage_help;
        return fault;
    }

  protected:
    Step fail(Step step, int32_t code, std::string cause, std::string help = {}) {
        fault_.code = code;
        fault_.cause = std::move(cause);
        fault_.help = std::move(help);
        step.state = Step::failed;
        return step;
    }

  private:
    Fault fault_;
};

// Longest stretch that begin() looks at: a zstd frame header (RFC 8878, 3.1.1.1) has 18 bytes, an
// lz4 one 19.
inline constexpr size_t frame_head = 32;

// Room for 32-bit counters of C libraries.
inline constexpr size_t longest_span = size_t{1} << 30;

std::unique_ptr<Codec> make_gzip();
// The same, which stops at borders.
std::unique_ptr<Codec> make_gzip_with_borders();
// The rest of a gzip member from a border on, without begin(): `bits` is how many bits of the byte
// before belong to it. What came before is unknown, so that its CRC is not checked.
std::unique_ptr<Codec> make_gzip_rest(unsigned bits, uint8_t byte, Bytes window);
std::unique_ptr<Codec> make_bzip2();
std::unique_ptr<Codec> make_xz(uint64_t max_window);
std::unique_ptr<Codec> make_zstd(uint64_t max_window);
std::unique_ptr<Codec> make_lz4();
std::unique_ptr<Codec> make_lzip(uint64_t max_window);
std::unique_ptr<Codec> make_compress();

// "zlib 1.2.13"
std::string gzip_version();
std::string bzip2_version();
std::string xz_version();
std::string zstd_version();
std::string lz4_version();

}  // namespace shf
