// New blobs in Azure Blob Storage.
#pragma once

#include "http/http_store.h"
#include "store/upload.h"

#include <memory>
#include <string>

namespace shf {

// For the target of an Azure store (see azure_store.h). Throws Error: IO (EEXIST) when the blob is
// there and overwrite=false. Blocks that were sent and never became a blob are removed by Azure
// after a week: nothing can do it before.
std::unique_ptr<Upload> azure_upload(std::shared_ptr<HttpStore> store, const std::string& target,
                                     const SourceContext& context);

// The same for resume(): looks at nothing.
std::unique_ptr<Upload> azure_prepared(std::shared_ptr<HttpStore> store, const std::string& target,
                                       const SourceContext& context);

}  // namespace shf
