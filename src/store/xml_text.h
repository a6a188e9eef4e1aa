// Answers of stores in XML.
#pragma once

#include <pugixml.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace shf {

// False: it is no XML, or not all of it, or has more elements and attributes than any page of a
// list: each takes ten times the memory of its text. Names may consist of spaces and have any line
// ends.
inline bool load_xml(pugi::xml_document& document, std::string_view body) {
    constexpr std::ptrdiff_t most_nodes = 2'000'000;
    if (std::count_if(body.begin(), body.end(), [](char c) { return c == '<' || c == '='; }) >
        most_nodes)
        return false;
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
