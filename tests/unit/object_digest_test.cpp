// What is read out of the headers of answers about digests of objects, and how they are computed.
#include "http/object_digest.h"

#include "core/checksum.h"
#include "core/options.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace shf {
namespace {

HttpAnswer answer_of(int status, std::initializer_list<std::string> headers) {
    HttpAnswer answer;
    answer.status = status;
    for (const std::string& header : headers) answer.add_header(header);
    return answer;
}

std::string hex_of(std::string_view bytes) {
    std::string text;
    for (const char c : bytes) {
        constexpr std::string_view digits = "0123456789abcdef";
        text += digits[static_cast<unsigned char>(c) >> 4U];
        text += digits[static_cast<unsigned char>(c) & 15U];
    }
    return text;
}

// "SHA-256:ba78..." of each, in their order.
std::vector<std::string> found(int status, std::initializer_list<std::string> headers) {
    std::vector<std::string> texts;
    for (const ObjectDigest& digest : digests_of(answer_of(status, headers)))
        texts.push_back(std::string(name_of(digest.kind)) + ":" + hex_of(digest.bytes));
    return texts;
}

using Texts = std::vector<std::string>;
// All of "123456789".
const Texts crc32c_text = {"CRC-32C:e3069283"};
const Texts crc32_text = {"CRC-32:cbf43926"};
const Texts md5_text = {"MD5:25f9e794323b453885f5181f1b624d0b"};
const Texts sha256_text = {
    "SHA-256:15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225"};
const std::string sha256_base64 = "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=";
const std::string part = "content-range: bytes 0-3/9", all = "content-range: bytes 0-8/9";
const std::string full = "x-amz-checksum-type: FULL_OBJECT";
const std::string amz_crc32 = "x-amz-checksum-crc32: y/Q5Jg==";

TEST(ObjectDigest, of_google) {
    EXPECT_EQ(found(206, {part, "X-Goog-Hash: crc32c=4waSgw=="}), crc32c_text);
    const Texts both = {crc32c_text[0], md5_text[0]};
    EXPECT_EQ(found(206, {part, "x-goog-hash: md5=JfnnlDI7RTiF9RgfG2JNCw==,crc32c=4waSgw=="}),
              both);
    EXPECT_EQ(
        found(200, {"x-goog-hash: md5=JfnnlDI7RTiF9RgfG2JNCw==", "x-goog-hash: crc32c=4waSgw=="}),
        both);
    const std::string hash = "x-goog-hash: crc32c=4waSgw==";
    const std::string packed = "x-goog-stored-content-encoding: gzip";
    EXPECT_EQ(found(200, {hash, packed, "content-encoding: gzip"}), crc32c_text);
    EXPECT_EQ(found(200, {hash, packed}), Texts());  // it came unpacked
    EXPECT_EQ(found(200, {hash, "x-goog-stored-content-encoding: identity"}), crc32c_text);
}

TEST(ObjectDigest, of_amazon) {
    EXPECT_EQ(found(200, {amz_crc32, full}), crc32_text);
    EXPECT_EQ(found(206, {all, amz_crc32, full}), crc32_text);
    EXPECT_EQ(found(206, {part, amz_crc32, full}), Texts());
    // Servers that say no type, and answers with ranges, where that of one part looks like it.
    EXPECT_EQ(found(200, {amz_crc32, "etag: \"25f9\""}), crc32_text);
    EXPECT_EQ(found(200, {amz_crc32, "etag: \"25f9-2\""}), Texts());
    EXPECT_EQ(found(206, {all, amz_crc32, "etag: \"25f9\""}), Texts());
    // Digests of the digests of parts.
    EXPECT_EQ(found(200, {amz_crc32, "x-amz-checksum-type: COMPOSITE"}), Texts());
    EXPECT_EQ(found(200, {"x-amz-checksum-crc32: y/Q5Jg==-2"}), Texts());
    EXPECT_EQ(found(200, {"x-amz-checksum-crc32: y/Q5Jg==-2", full}), Texts());
    EXPECT_EQ(found(200, {"x-amz-checksum-crc64nvme: rosUhgp5mIg=", full}),
              Texts{"CRC-64/NVME:ae8b14860a799888"});
    EXPECT_EQ(found(200, {"x-amz-checksum-sha256: " + sha256_base64, amz_crc32,
                          "x-amz-checksum-crc32c: 4waSgw==", full}),
              (Texts{crc32c_text[0], crc32_text[0], sha256_text[0]}));
}

TEST(ObjectDigest, of_rfc_9530) {
    const std::string field = "Repr-Digest: sha-256=:" + sha256_base64 + ":";
    EXPECT_EQ(found(200, {field}), sha256_text);
    EXPECT_EQ(found(206, {part, field}), sha256_text);  // never of the part
    EXPECT_EQ(found(200, {field + ";q=1"}), sha256_text);
    EXPECT_EQ(found(200, {"repr-digest: md5=:JfnnlDI7RTiF9RgfG2JNCw==:, unixsum=17 , " +
                          field.substr(13)}),
              sha256_text);
    EXPECT_EQ(found(200, {"content-digest: sha-256=:" + sha256_base64 + ":"}), Texts());
    EXPECT_EQ(found(200, {"repr-digest: sha-256=" + sha256_base64}), Texts());
    EXPECT_EQ(found(200, {"repr-digest: sha-512=:" + sha256_base64 + ":"}), Texts());
    EXPECT_EQ(found(200, {"repr-digest: sha-256=:"}), Texts());
    EXPECT_EQ(found(200, {"repr-digest: sha-256"}), Texts());
    EXPECT_EQ(found(200, {"repr-digest: ,,=,"}), Texts());
}

TEST(ObjectDigest, md5_of_blobs_and_of_whole_answers) {
    const std::string md5 = "content-md5: JfnnlDI7RTiF9RgfG2JNCw==";
    EXPECT_EQ(found(200, {md5}), md5_text);
    EXPECT_EQ(found(206, {all, md5}), md5_text);
    EXPECT_EQ(found(206, {part, md5}), Texts());  // it may be of the range
    EXPECT_EQ(found(206, {part, "x-ms-blob-content-md5: JfnnlDI7RTiF9RgfG2JNCw=="}), md5_text);
    EXPECT_EQ(found(206, {part, "content-md5: AAAAAAAAAAAAAAAAAAAAAA==",
                          "x-ms-blob-content-md5: JfnnlDI7RTiF9RgfG2JNCw=="}),
              md5_text);
    const std::string of_blob = "x-ms-blob-content-md5: JfnnlDI7RTiF9RgfG2JNCw==";
    EXPECT_EQ(found(206, {part, of_blob, "x-ms-blob-type: BlockBlob"}), md5_text);
    EXPECT_EQ(found(206, {part, of_blob, "x-ms-blob-type: AppendBlob"}), Texts());
    EXPECT_EQ(found(200, {md5, "x-ms-blob-type: PageBlob"}), Texts());
}

TEST(ObjectDigest, what_is_not_written_as_it_should_be) {
    for (const char* bad :
         {"", "4waSgw", "4waSgw=", "4wa*gw==", "4waSg===", "4waSgwA=", "4waSgx==",
          "4waSgw==4waSgw==", "=", "====", "4waSgwAA", "JfnnlDI7RTiF9RgfG2JNCw=="}) {
        EXPECT_EQ(found(200, {std::string("x-goog-hash: crc32c=") + bad}), Texts()) << bad;
        EXPECT_EQ(found(200, {std::string("x-amz-checksum-crc32: ") + bad, full}), Texts()) << bad;
    }
    EXPECT_EQ(found(200, {"x-goog-hash: crc32c"}), Texts());
    EXPECT_EQ(found(200, {"x-goog-hash: adler=4waSgw=="}), Texts());
}

std::string sum_of(DigestKind kind, std::string_view text, Checksums wanted = Checksums::all) {
    const auto sum = DigestSum::make(kind, wanted);
    if (!sum) return "none";
    // In pieces, as bytes come.
    for (size_t at = 0; at < text.size(); at += 4) {
        const std::string_view piece = text.substr(at, 4);
        sum->add({reinterpret_cast<const uint8_t*>(piece.data()), piece.size()});
    }
    return hex_of(sum->result());
}

TEST(DigestSum, of_bytes) {
    const std::string_view text = "123456789";
    EXPECT_EQ(sum_of(DigestKind::crc32c, text), have_crc32c ? "e3069283" : "none");
    EXPECT_EQ(sum_of(DigestKind::crc64nvme, text), have_crc64nvme ? "ae8b14860a799888" : "none");
    EXPECT_EQ(sum_of(DigestKind::crc32, text), "cbf43926");
    EXPECT_EQ(sum_of(DigestKind::crc32, text, Checksums::fast), "cbf43926");
    EXPECT_EQ(sum_of(DigestKind::crc32, text, Checksums::none), "none");
#ifdef SHF_HAVE_CRYPTO
    EXPECT_EQ(sum_of(DigestKind::md5, text), "25f9e794323b453885f5181f1b624d0b");
    EXPECT_EQ(sum_of(DigestKind::sha1, text), "f7c3bc1d808e04732adf679965ccc34ca7ae3441");
    EXPECT_EQ("SHA-256:" + sum_of(DigestKind::sha256, text), sha256_text[0]);
    EXPECT_EQ(sum_of(DigestKind::sha512, text).substr(0, 16), "d9e6762dd1c8eaf6");
    EXPECT_EQ(sum_of(DigestKind::sha256, ""),
              "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
#endif
    for (const DigestKind kind : {DigestKind::md5, DigestKind::sha1, DigestKind::sha256})
        EXPECT_EQ(sum_of(kind, text, Checksums::fast), "none");
}

}  // namespace
}  // namespace shf
