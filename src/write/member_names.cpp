#include "write/member_names.h"

#include "core/error.h"
#include "core/options.h"
#include "sample/name.h"

#include <algorithm>

namespace shf {

namespace {

constexpr size_t longest_name = 65535;  // of a ZIP file, and of the option max_name of readers
constexpr const char* allow = "give another one, or set unsafe_names=allow";

[[noreturn]] void refuse(const std::string& what, std::string_view name, const std::string& cause,
                         const char* help) {
    Fault fault;
    fault.code = SHF_E_USAGE;
    fault.member = escape(name);
    fault.cause = what + " " + cause;
    fault.help = help;
    throw Error(fault);
}

bool has_parent(std::string_view name) {
    while (!name.empty()) {
        const size_t slash = std::min(name.find_first_of("/\\"), name.size());
        if (name.substr(0, slash) == "..") return true;
        name.remove_prefix(std::min(slash + 1, name.size()));
    }
    return false;
}

}  // namespace

void MemberNames::begin(std::string_view key) {
    fields_.clear();
    if (key.find('\0') != key.npos) refuse("the key", key, "has a NUL", "give another one");
    if (key.empty() || key.ends_with('/'))
        refuse("the key", key, "has no name in its last component", "give every sample a key");
    key_ = key;
}

std::string MemberNames::name(std::string_view field) {
    if (field.empty() || field.find('\0') != field.npos || field.find('/') != field.npos)
        refuse("the field name", field, "is empty, or has a slash or a NUL",
               "name fields like suffixes: jpg, seg.png, cls");
    std::string name = key_;
    name += '.';
    name += field;
    if (name.size() > longest_name)
        refuse("the name", name, "has " + plural(name.size(), "byte"),
               "give shorter keys: 65535 bytes are the most");
    check(name, field);
    std::string lowered;
    append_lowered(lowered, field);
    if (std::find(fields_.begin(), fields_.end(), lowered) != fields_.end())
        refuse("the field", name, "is there already: readers take field names in lower case",
               "give every field once");
    fields_.push_back(std::move(lowered));
    return name;
}

void MemberNames::check(std::string_view name, std::string_view field) const {
    if (options_.unsafe_names == Leniency::allow) return;
    if (name.front() == '/' || name.front() == '\\') refuse("the name", name, "is absolute", allow);
    if (has_parent(name)) refuse("the name", name, "has the component \"..\"", allow);
    const MemberName parts = split_name(name);
    if (!parts.has_key)
        refuse("the name", name, "is one that readers pass over (hidden files, __metadata__)",
               allow);
    if (parts.key != key_ || parts.field != field)
        refuse("the key", name,
               "has a dot in its last component, so that readers take " + escape(parts.key) +
                   " for it",
               "replace the dot, or set unsafe_names=allow");
}

}  // namespace shf
