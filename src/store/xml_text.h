// Answers of stores in XML.
#pragma once

#include <pugixml.hpp>

#include <string>
#include <string_view>

namespace shf {

// False: it is no XML, or not all of it. Names may consist of spaces and have any line ends.
inline bool load_xml(pugi::xml_document& document, std::string_view body) {
    constexpr unsigned mode = pugi::parse_escapes | pugi::parse_cdata | pugi::parse_ws_pcdata;
    return document.load_buffer(body.data(), body.size(), mode, pugi::encoding_utf8).status ==
           pugi::status_ok;
}

// All text of an element: character data and CDATA follow one another.
inline std::string xml_text(const pugi::xml_node& node) {
    std::string result;
    for (const pugi::xml_node child : node.children())
        if (child.type() == pugi::node_pcdata || child.type() == pugi::node_cdata)
            result += child.value();
    return result;
}

}  // namespace shf
