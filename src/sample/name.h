// Key and field name of a member.
#pragma once

#include <string>
#include <string_view>

namespace shf {

// What a member's name says. Both parts lie in the name.
struct MemberName {
    std::string_view key;
    std::string_view field;  // not lower-cased yet
    bool has_key = false;    // false: the member belongs to no sample
};

// Splits a member name after the first dot of its last component: "a.b/c.d.e" is key "a.b/c" and
// field "d.e"; the field may be empty ("c."). No key have names without a dot there, hidden files
// ("dir/.x", "dir/._x.jpg": webdataset makes the key "dir/" of them, which joins unrelated files),
// and metadata: a first component, or a whole name, between "__" and "__".
MemberName split_name(std::string_view name);

// Appends `text` with its ASCII letters in lower case.
void append_lowered(std::string& out, std::string_view text);

// Whether `field`, as split_name() gives it, is the field name `lowered` of a sample.
bool same_lowered(std::string_view field, std::string_view lowered);

}  // namespace shf
