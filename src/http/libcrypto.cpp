#include "http/libcrypto.h"

#include "core/dynamic_library.h"
#include "core/fork.h"

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>

#include <limits>
#include <memory>
#include <new>

namespace shf {

namespace {

// Its functions under their own names.
struct Libcrypto {
    decltype(&::BIO_free) BIO_free;
    decltype(&::BIO_new_mem_buf) BIO_new_mem_buf;
    decltype(&::ERR_clear_error) ERR_clear_error;
    decltype(&::EVP_DecodeBlock) EVP_DecodeBlock;
    decltype(&::EVP_Digest) EVP_Digest;
    decltype(&::EVP_DigestFinal_ex) EVP_DigestFinal_ex;
    decltype(&::EVP_DigestInit_ex) EVP_DigestInit_ex;
    decltype(&::EVP_DigestSign) EVP_DigestSign;
    decltype(&::EVP_DigestSignInit) EVP_DigestSignInit;
    decltype(&::EVP_DigestUpdate) EVP_DigestUpdate;
    decltype(&::EVP_MD_CTX_copy_ex) EVP_MD_CTX_copy_ex;
    decltype(&::EVP_MD_CTX_free) EVP_MD_CTX_free;
    decltype(&::EVP_MD_CTX_new) EVP_MD_CTX_new;
    decltype(&::EVP_PKEY_free) EVP_PKEY_free;
    decltype(&::EVP_PKEY_get_base_id) EVP_PKEY_get_base_id;
    decltype(&::EVP_EncodeBlock) EVP_EncodeBlock;
    decltype(&::EVP_md5) EVP_md5;
    decltype(&::EVP_sha1) EVP_sha1;
    decltype(&::EVP_sha256) EVP_sha256;
    decltype(&::EVP_sha512) EVP_sha512;
    decltype(&::HMAC) HMAC;
    decltype(&::OPENSSL_thread_stop) OPENSSL_thread_stop;
    decltype(&::PEM_read_bio_PrivateKey) PEM_read_bio_PrivateKey;
};

Libcrypto load() {
    const DynamicLibrary library("libcrypto", "libcrypto.so.3",
                                 "install libssl3 (Debian, Ubuntu) or openssl-libs (Fedora)");
    Libcrypto crypto;
    library.find("BIO_free", crypto.BIO_free);
    library.find("BIO_new_mem_buf", crypto.BIO_new_mem_buf);
    library.find("ERR_clear_error", crypto.ERR_clear_error);
    library.find("EVP_DecodeBlock", crypto.EVP_DecodeBlock);
    library.find("EVP_Digest", crypto.EVP_Digest);
    library.find("EVP_DigestFinal_ex", crypto.EVP_DigestFinal_ex);
    library.find("EVP_DigestInit_ex", crypto.EVP_DigestInit_ex);
    library.find("EVP_DigestSign", crypto.EVP_DigestSign);
    library.find("EVP_DigestSignInit", crypto.EVP_DigestSignInit);
    library.find("EVP_DigestUpdate", crypto.EVP_DigestUpdate);
    library.find("EVP_MD_CTX_copy_ex", crypto.EVP_MD_CTX_copy_ex);
    library.find("EVP_MD_CTX_free", crypto.EVP_MD_CTX_free);
    library.find("EVP_MD_CTX_new", crypto.EVP_MD_CTX_new);
    library.find("EVP_PKEY_free", crypto.EVP_PKEY_free);
    library.find("EVP_PKEY_get_base_id", crypto.EVP_PKEY_get_base_id);
    library.find("EVP_EncodeBlock", crypto.EVP_EncodeBlock);
    library.find("EVP_md5", crypto.EVP_md5);
    library.find("EVP_sha1", crypto.EVP_sha1);
    library.find("EVP_sha256", crypto.EVP_sha256);
    library.find("EVP_sha512", crypto.EVP_sha512);
    library.find("HMAC", crypto.HMAC);
    library.find("OPENSSL_thread_stop", crypto.OPENSSL_thread_stop);
    library.find("PEM_read_bio_PrivateKey", crypto.PEM_read_bio_PrivateKey);
    stop_at_thread_end(crypto.OPENSSL_thread_stop);
    return crypto;
}

// Under a hold, which every function below takes for its locks.
const Libcrypto& libcrypto() {
    static const Libcrypto crypto = load();
    return crypto;
}

[[noreturn]] void failed(const char* what) {
    libcrypto().ERR_clear_error();
    throw Error(SHF_E_INTERNAL, std::string("libcrypto: ") + what + " failed");
}

// No other password than none: libcrypto would ask at the terminal.
int no_password(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*context*/) {
    return -1;
}

}  // namespace

Sha256 sha256(std::string_view data) {
    const ForkHold hold;
    const Libcrypto& crypto = libcrypto();
    Sha256 result;
    if (crypto.EVP_Digest(data.data(), data.size(), result.data(), nullptr, crypto.EVP_sha256(),
                          nullptr) != 1)
        failed("SHA-256");
    return result;
}

Sha256 hmac_sha256(std::string_view key, std::string_view data) {
    const ForkHold hold;
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

std::optional<std::string> md5(std::span<const uint8_t> data) {
    const ForkHold hold;
    const Libcrypto& crypto = libcrypto();
    std::string result(16, '\0');
    if (crypto.EVP_Digest(data.data(), data.size(), reinterpret_cast<unsigned char*>(result.data()),
                          nullptr, crypto.EVP_md5(), nullptr) == 1)
        return result;
    crypto.ERR_clear_error();
    return std::nullopt;
}

struct RunningHash::State {
    std::unique_ptr<EVP_MD_CTX, decltype(Libcrypto::EVP_MD_CTX_free)> context{
        libcrypto().EVP_MD_CTX_new(), libcrypto().EVP_MD_CTX_free};
};

RunningHash::RunningHash(HashKind kind) {
    const ForkHold hold;
    const Libcrypto& crypto = libcrypto();
    const EVP_MD* const method = kind == HashKind::md5      ? crypto.EVP_md5()
                                 : kind == HashKind::sha1   ? crypto.EVP_sha1()
                                 : kind == HashKind::sha256 ? crypto.EVP_sha256()
                                                            : crypto.EVP_sha512();
    auto state = std::make_unique<State>();
    if (!state->context) throw std::bad_alloc();
    if (crypto.EVP_DigestInit_ex(state->context.get(), method, nullptr) == 1)
        state_ = std::move(state);
    else
        crypto.ERR_clear_error();
}

RunningHash::~RunningHash() {
    const ForkHold hold;
    state_.reset();
}

void RunningHash::add(std::span<const uint8_t> data) {
    const ForkHold hold;
    if (state_ &&
        libcrypto().EVP_DigestUpdate(state_->context.get(), data.data(), data.size()) != 1)
        failed("a hash");
}

std::optional<std::string> RunningHash::result() const {
    if (!state_) return std::nullopt;
    const ForkHold hold;
    const State copy;
    std::array<unsigned char, EVP_MAX_MD_SIZE> result;
    unsigned size = 0;
    if (!copy.context) throw std::bad_alloc();
    if (libcrypto().EVP_MD_CTX_copy_ex(copy.context.get(), state_->context.get()) != 1 ||
        libcrypto().EVP_DigestFinal_ex(copy.context.get(), result.data(), &size) != 1)
        failed("a hash");
    return std::string(result.begin(), result.begin() + size);
}

std::string sha1_hex(std::string_view data) {
    const ForkHold hold;
    const Libcrypto& crypto = libcrypto();
    std::array<char, EVP_MAX_MD_SIZE> result;
    unsigned size = 0;
    if (crypto.EVP_Digest(data.data(), data.size(), reinterpret_cast<unsigned char*>(result.data()),
                          &size, crypto.EVP_sha1(), nullptr) != 1)
        failed("SHA-1");
    return hex({result.data(), size});
}

std::string rsa_sha256(const std::string& private_key, std::string_view data) {
    const ForkHold hold;
    const Libcrypto& crypto = libcrypto();
    const auto refuse = [&](const char* cause) {
        crypto.ERR_clear_error();
        throw Error(SHF_E_AUTH, cause, "give a private RSA key in PEM, without a password");
    };
    if (private_key.size() > static_cast<size_t>(std::numeric_limits<int>::max()))
        refuse("the private key is too long");
    const std::unique_ptr<BIO, decltype(crypto.BIO_free)> text(
        crypto.BIO_new_mem_buf(private_key.data(), static_cast<int>(private_key.size())),
        crypto.BIO_free);
    if (!text) throw std::bad_alloc();
    const std::unique_ptr<EVP_PKEY, decltype(crypto.EVP_PKEY_free)> key(
        crypto.PEM_read_bio_PrivateKey(text.get(), nullptr, no_password, nullptr),
        crypto.EVP_PKEY_free);
    if (!key) refuse("the private key cannot be read");
    if (crypto.EVP_PKEY_get_base_id(key.get()) != EVP_PKEY_RSA)
        refuse("the private key is no RSA key");
    const std::unique_ptr<EVP_MD_CTX, decltype(crypto.EVP_MD_CTX_free)> context(
        crypto.EVP_MD_CTX_new(), crypto.EVP_MD_CTX_free);
    if (!context) throw std::bad_alloc();
    if (crypto.EVP_DigestSignInit(context.get(), nullptr, crypto.EVP_sha256(), nullptr,
                                  key.get()) != 1)
        failed("signing");
    const auto* const bytes = reinterpret_cast<const unsigned char*>(data.data());
    size_t size = 0;
    if (crypto.EVP_DigestSign(context.get(), nullptr, &size, bytes, data.size()) != 1)
        failed("signing");
    std::string result(size, '\0');
    if (crypto.EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(result.data()), &size,
                              bytes, data.size()) != 1)
        failed("signing");
    result.resize(size);
    return result;
}

std::string base64_encode(std::string_view data) {
    constexpr size_t most = size_t{1} << 20;
    if (data.size() > most) failed("base64");
    const ForkHold hold;
    // It writes a NUL at the end.
    std::string text(4 * ((data.size() + 2) / 3) + 1, '\0');
    const int size = libcrypto().EVP_EncodeBlock(
        reinterpret_cast<unsigned char*>(text.data()),
        reinterpret_cast<const unsigned char*>(data.data()), static_cast<int>(data.size()));
    if (size < 0 || static_cast<size_t>(size) + 1 != text.size()) failed("base64");
    text.pop_back();
    return text;
}

std::optional<std::string> base64_decode(std::string_view text) {
    constexpr size_t most = size_t{1} << 20;
    if (text.size() > most || text.size() % 4 != 0) return std::nullopt;
    std::string data(text.size() / 4 * 3, '\0');
    if (text.empty()) return data;
    const ForkHold hold;
    const int size = libcrypto().EVP_DecodeBlock(
        reinterpret_cast<unsigned char*>(data.data()),
        reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
    if (size < 0 || static_cast<size_t>(size) != data.size()) return std::nullopt;
    // It takes padding for bytes, and blanks around the text for nothing.
    const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
    data.resize(data.size() - padding);
    if (base64_encode(data) != text) return std::nullopt;
    return data;
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
