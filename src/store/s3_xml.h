// What S3 and STS say in XML.
#pragma once

#include "store/renewed.h"
#include "store/sigv4.h"
#include "store/store_list.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

// A refusal. Empty: not said.
struct S3Fault {
    std::string code, message, request_id, host_id, region, endpoint;
    std::string details;  // of Google
};
// Of any text; what is no such XML says nothing.
S3Fault parse_s3_fault(std::string_view body);

// A page of ListObjectsV2. Throws Error(NET_PERMANENT) for what is not all of one.
StorePage parse_s3_page(std::string_view body);

// The answer to CreateMultipartUpload: how the upload is called. Throws Error(NET_PERMANENT).
std::string parse_s3_upload_id(std::string_view body);
// What CompleteMultipartUpload says of one part. Throws Error(NET_PERMANENT) for a tag that is
// none.
std::string s3_part_xml(const std::string& number, const std::string& tag, const std::string& crc);

// An upload in parts that was begun, and neither completed nor aborted.
struct S3PendingUpload {
    std::string key{}, number{};

    bool operator==(const S3PendingUpload&) const = default;
};
struct S3UploadPage {
    std::vector<S3PendingUpload> uploads{};
    bool more = false;
    S3PendingUpload next{};  // what the next page begins behind
};
// A page of ListMultipartUploads. Throws Error(NET_PERMANENT) for what is not all of one.
S3UploadPage parse_s3_uploads(std::string_view body);

using TemporaryKeys = Expiring<AwsKeys>;
// The answer to AssumeRole or AssumeRoleWithWebIdentity. Throws Error(AUTH).
TemporaryKeys parse_sts_keys(std::string_view body);

// "2026-11-24T03:00:00Z", with a fraction or an offset too.
std::optional<int64_t> parse_time(std::string_view text);

}  // namespace shf
