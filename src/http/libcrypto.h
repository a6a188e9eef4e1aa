// Hashes, signatures and base64 of OpenSSL's libcrypto, which is loaded when it is first used.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace shf {

using Sha256 = std::array<uint8_t, 32>;

// All throw Error(UNSUPPORTED) when the system has no libcrypto of OpenSSL 3.
Sha256 sha256(std::string_view data);
Sha256 hmac_sha256(std::string_view key, std::string_view data);
// For file names that others have chosen; not for security.
std::string sha1_hex(std::string_view data);
// For servers that verify bytes by it; not for security. Nothing where the system forbids it.
std::optional<std::string> md5(std::span<const uint8_t> data);
enum class HashKind : uint8_t { md5, sha1, sha256, sha512 };
// A hash of bytes that come one after another.
class RunningHash {
  public:
    explicit RunningHash(HashKind kind);
    ~RunningHash();
    RunningHash(const RunningHash&) = delete;
    RunningHash& operator=(const RunningHash&) = delete;
    void add(std::span<const uint8_t> data);
    // Of all so far: its bytes. Nothing where the system forbids this hash.
    [[nodiscard]] std::optional<std::string> result() const;

  private:
    struct State;
    std::unique_ptr<State> state_;  // none where the system forbids it
};
// The RSASSA-PKCS1-v1_5 signature of `data` with SHA-256, by a private key in PEM. Throws
// Error(AUTH) for a text that is no such key; the message shows nothing of it.
std::string rsa_sha256(const std::string& private_key, std::string_view data);

// RFC 4648, 4, with padding; nothing for what is not exactly what base64_encode() writes.
std::string base64_encode(std::string_view data);
std::optional<std::string> base64_decode(std::string_view text);

// Bytes as text.
inline std::string_view text_of(const Sha256& hash) {
    return {reinterpret_cast<const char*>(hash.data()), hash.size()};
}
// In lower case.
std::string hex(std::string_view bytes);

}  // namespace shf
