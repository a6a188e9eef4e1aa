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

// The same for resume(): looks at nothing. What is prepared is an object whose name begins with a
// dot and ends in ".partial", since an upload is either complete or the secret of who began it.
std::unique_ptr<Upload> gs_prepared(const GsUrl& object, const SourceContext& context);
// Removes what was prepared for keys of this pattern (io/prepared_file.h).
void discard_gs_prepared(const GsUrl& pattern, const SourceContext& context);

}  // namespace shf
