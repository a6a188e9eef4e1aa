// Amazon S3, and servers that speak as it does.
#pragma once

#include "http/http_store.h"
#include "store/s3_xml.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

// "s3://bucket/key": the key stands as it is, nothing in it is encoded.
struct S3Url {
    std::string bucket, key;
};
// Throws Error(USAGE).
S3Url parse_s3_url(std::string_view url);

// Its targets are s3_target() and s3_list_target(). Throws Error(USAGE) for options that do not
// fit.
std::shared_ptr<HttpStore> s3_store(const std::string& bucket, const SourceContext& context);
std::string s3_target(std::string_view key);
std::string s3_list_target(std::string_view prefix, std::string_view continuation);
// Of the uploads in parts to keys that begin with `prefix`, behind those of `page`.
std::string s3_uploads_target(std::string_view prefix, const S3UploadPage& page);

// All keys that begin with `prefix`, in the order of their bytes. Throws Error.
std::vector<std::string> list_s3(const std::string& bucket, const std::string& prefix,
                                 const SourceContext& context);

}  // namespace shf
