// What Azure Blob Storage says in XML.
#pragma once

#include "store/store_list.h"

#include <string>
#include <string_view>

namespace shf {

// A refusal. Empty: not said.
struct AzureFault {
    std::string code;
    std::string message;  // its first line
    std::string detail;   // why an authorization is not valid; may repeat parts of it
};
// Of any text; what is no such XML says nothing.
AzureFault parse_azure_fault(std::string_view body);

// One page of List Blobs; folders of hierarchical namespaces are left out. Throws
// Error(NET_PERMANENT) for what is not all of such a page.
StorePage parse_azure_page(std::string_view body);

}  // namespace shf
