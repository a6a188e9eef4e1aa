#include "http/object_digest.h"

#include "core/checksum.h"
#include "core/lowered.h"
#include "core/options.h"
#include "core/trimmed.h"
#ifdef SHF_HAVE_CRYPTO
#include "http/libcrypto.h"
#endif

#include <algorithm>
#include <array>
#include <string_view>

namespace shf {

namespace {

constexpr std::string_view list_blanks = " \t";

// RFC 4648, 4, with padding; nothing for any other text. Without libcrypto, which CRCs do not need.
std::optional<std::string> bytes_of_base64(std::string_view text) {
    constexpr std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (text.size() % 4 != 0) return std::nullopt;
    const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
    text.remove_suffix(padding);
    std::string bytes;
    uint32_t bits = 0;
    unsigned count = 0;
    for (const char c : text) {
        const size_t digit = digits.find(c);
        if (digit == digits.npos) return std::nullopt;
        bits = bits << 6U | static_cast<uint32_t>(digit);
        count += 6;
        if (count < 8) continue;
        count -= 8;
        bytes += static_cast<char>(bits >> count & 0xFFU);
    }
    if (count != 2 * padding || (bits & ((uint32_t{1} << count) - 1)) != 0) return std::nullopt;
    return bytes;
}

size_t digest_size(DigestKind kind) {
    switch (kind) {
        case DigestKind::crc64nvme: return 8;
        case DigestKind::crc32c:
        case DigestKind::crc32: return 4;
        case DigestKind::md5: return 16;
        case DigestKind::sha1: return 20;
        case DigestKind::sha256: return 32;
        case DigestKind::sha512: return 64;
    }
    return 0;
}

// Adds what `text`, in base64, says, when it is one of that kind.
void add_digest(DigestKind kind, std::string_view text, std::vector<ObjectDigest>& digests) {
    auto bytes = bytes_of_base64(text);
    if (bytes && bytes->size() == digest_size(kind)) digests.push_back({kind, std::move(*bytes)});
}

// Calls `use` with the name, in lower case, and the value of each "name=value" between commas.
template <typename Use>
void for_each_member(std::string_view list, Use use) {
    while (!list.empty()) {
        const size_t end = std::min(list.find(','), list.size());
        const std::string_view member = trimmed(list.substr(0, end), list_blanks);
        list.remove_prefix(std::min(end + 1, list.size()));
        const size_t equal = std::min(member.find('='), member.size());
        use(lowered(member.substr(0, equal)), member.substr(std::min(equal + 1, member.size())));
    }
}

void add_goog_hash(const HttpAnswer& answer, std::vector<ObjectDigest>& digests) {
    // What is stored compressed may come unpacked; the digest is that of what is stored.
    const std::string_view stored = answer.header("x-goog-stored-content-encoding");
    const std::string_view sent = answer.header("content-encoding");
    if (!stored.empty() && stored != (sent.empty() ? "identity" : sent)) return;
    for_each_member(answer.headers_of("x-goog-hash"),
                    [&](const std::string& name, std::string_view value) {
                        if (name == "crc32c") add_digest(DigestKind::crc32c, value, digests);
                        if (name == "md5") add_digest(DigestKind::md5, value, digests);
                    });
}

// Whether the answer has, or is to HEAD and would have, all of the object.
bool is_of_all(const HttpAnswer& answer) {
    if (answer.status == 200) return true;
    return answer.status == 206 && answer.range && !answer.range->unsatisfied &&
           answer.range->first == 0 && answer.range->total == answer.range->last + 1;
}

// Of an upload in parts it may be a digest of the digests of its parts. The text then ends in "-N",
// but not in answers with ranges, where it may also be that of one part.
void add_amz_checksums(const HttpAnswer& answer, std::vector<ObjectDigest>& digests) {
    if (!is_of_all(answer)) return;
    const std::string type = lowered(answer.header("x-amz-checksum-type"));
    if (type.empty()) {
        // Servers that do not say which it is are believed where there were no parts.
        const bool parts = answer.etag.find('-') != std::string::npos;
        if (answer.status != 200 || parts) return;
    } else if (type != "full_object") {
        return;
    }
    constexpr std::pair<const char*, DigestKind> names[] = {
        {"x-amz-checksum-crc64nvme", DigestKind::crc64nvme},
        {"x-amz-checksum-crc32c", DigestKind::crc32c},
        {"x-amz-checksum-crc32", DigestKind::crc32},
        {"x-amz-checksum-sha256", DigestKind::sha256},
        {"x-amz-checksum-sha512", DigestKind::sha512},
        {"x-amz-checksum-sha1", DigestKind::sha1},
        {"x-amz-checksum-md5", DigestKind::md5}};
    for (const auto& [name, kind] : names) add_digest(kind, answer.header(name), digests);
}

// Of the whole object in its encoding, also in an answer with a part of it (RFC 9530, 3): the bytes
// as they are sent, which are not decoded here.
void add_repr_digest(const HttpAnswer& answer, std::vector<ObjectDigest>& digests) {
    for_each_member(
        answer.headers_of("repr-digest"), [&](const std::string& name, std::string_view value) {
            value = trimmed(value.substr(0, value.find(';')), list_blanks);  // without parameters
            if (value.size() < 2 || !value.starts_with(':') || !value.ends_with(':')) return;
            value = value.substr(1, value.size() - 2);
            if (name == "sha-256") add_digest(DigestKind::sha256, value, digests);
            if (name == "sha-512") add_digest(DigestKind::sha512, value, digests);
        });
}

void add_md5(const HttpAnswer& answer, std::vector<ObjectDigest>& digests) {
    // Azure keeps it when bytes are appended to a blob, or written into one of pages.
    const std::string_view type = answer.header("x-ms-blob-type");
    if (!type.empty() && type != "BlockBlob") return;
    const std::string_view of_blob = answer.header("x-ms-blob-content-md5");
    if (!of_blob.empty())
        add_digest(DigestKind::md5, of_blob, digests);
    else if (is_of_all(answer))  // else it may be that of the range
        add_digest(DigestKind::md5, answer.header("content-md5"), digests);
}

class CrcSum final : public DigestSum {
  public:
    explicit CrcSum(DigestKind kind) : DigestSum(kind) {}
    void add(std::span<const uint8_t> bytes) override {
        if (kind() == DigestKind::crc64nvme)
            sum_ = crc64nvme(bytes, sum_);
        else if (kind() == DigestKind::crc32c)
            sum_ = crc32c(bytes, static_cast<uint32_t>(sum_));
        else
            sum_ = crc32(bytes, static_cast<uint32_t>(sum_));
    }
    [[nodiscard]] std::string result() const override {
        std::string bytes;
        for (size_t shift = 8 * digest_size(kind()); shift > 0; shift -= 8)
            bytes += static_cast<char>(sum_ >> (shift - 8) & 0xFFU);
        return bytes;
    }

  private:
    uint64_t sum_ = 0;
};

#ifdef SHF_HAVE_CRYPTO
HashKind hash_of(DigestKind kind) {
    switch (kind) {
        case DigestKind::sha1: return HashKind::sha1;
        case DigestKind::sha256: return HashKind::sha256;
        case DigestKind::sha512: return HashKind::sha512;
        default: return HashKind::md5;
    }
}

class HashSum final : public DigestSum {
  public:
    explicit HashSum(DigestKind kind) : DigestSum(kind), hash_(hash_of(kind)) {}
    void add(std::span<const uint8_t> bytes) override { hash_.add(bytes); }
    [[nodiscard]] std::string result() const override { return hash_.result().value_or(""); }
    [[nodiscard]] bool is_allowed() const { return hash_.result().has_value(); }

  private:
    RunningHash hash_;
};
#endif

}  // namespace

const char* name_of(DigestKind kind) {
    switch (kind) {
        case DigestKind::crc64nvme: return "CRC-64/NVME";
        case DigestKind::crc32c: return "CRC-32C";
        case DigestKind::crc32: return "CRC-32";
        case DigestKind::sha256: return "SHA-256";
        case DigestKind::sha512: return "SHA-512";
        case DigestKind::sha1: return "SHA-1";
        case DigestKind::md5: return "MD5";
    }
    return "";
}

std::vector<ObjectDigest> digests_of(const HttpAnswer& answer) {
    std::vector<ObjectDigest> digests;
    add_goog_hash(answer, digests);
    add_amz_checksums(answer, digests);
    add_repr_digest(answer, digests);
    add_md5(answer, digests);
    std::stable_sort(digests.begin(), digests.end(),
                     [](const ObjectDigest& a, const ObjectDigest& b) { return a.kind < b.kind; });
    return digests;
}

std::unique_ptr<DigestSum> DigestSum::make(DigestKind kind, Checksums wanted) {
    if (wanted == Checksums::none || (wanted == Checksums::fast && !is_fast(kind))) return nullptr;
    if (kind == DigestKind::crc32 || (kind == DigestKind::crc32c && have_crc32c) ||
        (kind == DigestKind::crc64nvme && have_crc64nvme))
        return std::make_unique<CrcSum>(kind);
#ifdef SHF_HAVE_CRYPTO
    if (!is_fast(kind)) {
        try {
            auto sum = std::make_unique<HashSum>(kind);
            if (sum->is_allowed()) return sum;
        } catch (const Error&) {  // the system has no libcrypto
        }
    }
#endif
    return nullptr;
}

}  // namespace shf
