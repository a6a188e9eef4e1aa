// New objects in Amazon S3, and on servers that speak as it does.
#pragma once

#include "http/http_store.h"
#include "store/upload.h"

#include <memory>
#include <string>

namespace shf {

// For the target of an S3 store (see s3_store.h). Throws Error: IO (EEXIST) when the object is
// there and overwrite=false.
std::unique_ptr<Upload> s3_upload(std::shared_ptr<HttpStore> store, const std::string& target,
                                  const SourceContext& context);

// The same for resume(): looks at nothing.
std::unique_ptr<Upload> s3_prepared(std::shared_ptr<HttpStore> store, const std::string& target,
                                    const SourceContext& context);
// Aborts all uploads in parts to keys of this pattern (io/prepared_file.h).
void discard_s3_uploads(HttpStore& store, const std::string& pattern, const SourceContext& context);

}  // namespace shf
