// What servers say of the bytes of a whole object: CRCs and hashes (H17).
#pragma once

#include "http/http_answer.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shf {

enum class Checksums : uint8_t;

// The best one first: CRCs take a twentieth of the time of the others.
enum class DigestKind : uint8_t { crc64nvme, crc32c, crc32, sha256, sha512, sha1, md5 };
inline constexpr DigestKind digest_kinds[] = {
    DigestKind::crc64nvme, DigestKind::crc32c, DigestKind::crc32, DigestKind::sha256,
    DigestKind::sha512,    DigestKind::sha1,   DigestKind::md5};
constexpr uint32_t bit_of(DigestKind kind) {
    return uint32_t{1} << static_cast<uint8_t>(kind);
}
// "SHA-256".
const char* name_of(DigestKind kind);
constexpr bool is_fast(DigestKind kind) {
    return kind <= DigestKind::crc32;
}

struct ObjectDigest {
    DigestKind kind;
    std::string bytes;  // a CRC: the most significant byte first

    bool operator==(const ObjectDigest&) const = default;
};

// Those that an answer to GET or HEAD gives of the whole object, the best one first, whatever part
// of it came: x-goog-hash, x-amz-checksum-*, Repr-Digest (RFC 9530), x-ms-blob-content-md5 and
// Content-MD5. What is not certain to be of all bytes, as they are sent, is left out, and so is
// what is not written as it should be.
std::vector<ObjectDigest> digests_of(const HttpAnswer& answer);

// The digest of bytes that come one after another.
class DigestSum {
  public:
    // NULL where it cannot be computed here (no ISA-L or libcrypto, or the system forbids the
    // hash), or `wanted`, the option, leaves it out.
    static std::unique_ptr<DigestSum> make(DigestKind kind, Checksums wanted);
    virtual ~DigestSum() = default;
    DigestSum(const DigestSum&) = delete;
    DigestSum& operator=(const DigestSum&) = delete;

    virtual void add(std::span<const uint8_t> bytes) = 0;
    // Of all so far.
    [[nodiscard]] virtual std::string result() const = 0;
    [[nodiscard]] DigestKind kind() const { return kind_; }

  protected:
    explicit DigestSum(DigestKind kind) : kind_(kind) {}

  private:
    const DigestKind kind_;
};

}  // namespace shf
