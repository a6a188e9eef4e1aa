// New objects in Google Cloud Storage, by its JSON API.
#pragma once

#include "store/gs_store.h"
#include "store/upload.h"

#include <memory>

namespace shf {

// Parts go one after another, since what takes several at once (its XML API) knows no conditions.
// Throws Error: USAGE (HMAC keys, a key that is no UTF-8), IO (EEXIST) when the object is there and
// overwrite=false.
std::unique_ptr<Upload> gs_upload(const GsUrl& object, const SourceContext& context);

}  // namespace shf
