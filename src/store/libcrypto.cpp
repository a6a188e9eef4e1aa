#include "store/libcrypto.h"

#include "core/dynamic_library.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <limits>

namespace shf {

namespace {

// Its functions under their own names.
struct Libcrypto {
    decltype(&::ERR_clear_error) ERR_clear_error;
    decltype(&::EVP_Digest) EVP_Digest;
    decltype(&::EVP_sha1) EVP_sha1;
    decltype(&::EVP_sha256) EVP_sha256;
    decltype(&::HMAC) HMAC;
};

Libcrypto load() {
    const DynamicLibrary library("libcrypto", "libcrypto.so.3",
                                 "install libssl3 (Debian, Ubuntu) or openssl-libs (Fedora)");
    Libcrypto crypto;
    library.find("ERR_clear_error", crypto.ERR_clear_error);
    library.find("EVP_Digest", crypto.EVP_Digest);
    library.find("EVP_sha1", crypto.EVP_sha1);
    library.find("EVP_sha256", crypto.EVP_sha256);
    library.find("HMAC", crypto.HMAC);
    return crypto;
}

const Libcrypto& libcrypto() {
    static const Libcrypto crypto = load();
    return crypto;
}

[[noreturn]] void failed(const char* what) {
    libcrypto().ERR_clear_error();
    throw Error(SHF_E_INTERNAL, std::string("libcrypto: ") + what + " failed");
}

}  // namespace

Sha256 sha256(std::string_view data) {
    const Libcrypto& crypto = libcrypto();
    Sha256 result;
    if (crypto.EVP_Digest(data.data(), data.size(), result.data(), nullptr, crypto.EVP_sha256(),
                          nullptr) != 1)
        failed("SHA-256");
    return result;
}

Sha256 hmac_sha256(std::string_view key, std::string_view data) {
    const Libcrypto& crypto = libcrypto();
    Sha256 result;
    unsigned size = 0;
    if (key.size() > static_cast<size_t>(std::numeric_limits<int>::max())) failed("HMAC");
    // A key of no bytes must be an address all the same.
    if (!crypto.HMAC(crypto.EVP_sha256(), key.empty() ? "" : key.data(),
                     static_cast<int>(key.size()),
                     reinterpret_cast<const unsigned char*>(data.data()), data.size(),
                     result.data(), &size) ||
        size != result.size())
        failed("HMAC");
    return result;
}

std::string sha1_hex(std::string_view data) {
    const Libcrypto& crypto = libcrypto();
    std::array<char, EVP_MAX_MD_SIZE> result;
    unsigned size = 0;
    if (crypto.EVP_Digest(data.data(), data.size(), reinterpret_cast<unsigned char*>(result.data()),
                          &size, crypto.EVP_sha1(), nullptr) != 1)
        failed("SHA-1");
    return hex({result.data(), size});
}

std::string hex(std::string_view bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string result;
    result.reserve(bytes.size() * 2);
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        result += digits[byte >> 4U];
        result += digits[byte & 15U];
    }
    return result;
}

}  // namespace shf
