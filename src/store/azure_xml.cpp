#include "store/azure_xml.h"

#include "core/error.h"
#include "store/xml_text.h"
#include "url/percent.h"

#include <algorithm>
#include <cstring>

namespace shf {

namespace {

// Identifiers and times that are in headers too follow in other lines.
std::string first_line(std::string text) {
    text.resize(std::min(text.find_first_of("\r\n"), text.size()));
    return text;
}

[[noreturn]] void refuse_page(const char* cause) {
    throw Error(SHF_E_NET_PERMANENT,
                std::string("the list of the container cannot be used: ") + cause,
                "look at what serves this endpoint, or name the shards one by one");
}

bool is_folder(const pugi::xml_node& blob) {
    return xml_text(blob.child("Properties").child("ResourceType")) == "directory" ||
           xml_text(blob.child("Metadata").child("hdi_isfolder")) == "true";
}

}  // namespace

AzureFault parse_azure_fault(std::string_view body) {
    pugi::xml_document document;
    if (!load_xml(document, body)) return {};
    const pugi::xml_node root = document.document_element();
    if (std::strcmp(root.name(), "Error") != 0) return {};
    return {.code = xml_text(root.child("Code")),
            .message = first_line(xml_text(root.child("Message"))),
            .detail = first_line(xml_text(root.child("AuthenticationErrorDetail")))};
}

StorePage parse_azure_page(std::string_view body) {
    pugi::xml_document document;
    if (!load_xml(document, body)) refuse_page("it is not whole, or no XML");
    const pugi::xml_node root = document.document_element();
    if (std::strcmp(root.name(), "EnumerationResults") != 0) refuse_page("it is something else");
    const pugi::xml_node blobs = root.child("Blobs"), next = root.child("NextMarker");
    if (!blobs || !next) refuse_page("it does not say whether it is the last page");
    StorePage page;
    for (const pugi::xml_node blob : blobs.children("Blob")) {
        const pugi::xml_node node = blob.child("Name");
        std::string name = xml_text(node);
        // Of characters that XML cannot have.
        if (node.attribute("Encoded").as_bool()) name = percent_decoded(name);
        if (name.empty()) refuse_page("a blob without a name");
        if (name.find('\0') != name.npos) refuse_page("a name with a NUL byte");
        if (!is_folder(blob)) page.keys.push_back(std::move(name));
    }
    page.next = xml_text(next);
    return page;
}

}  // namespace shf
