#include "sample/name.h"

#include <algorithm>
#include <cstring>

namespace shf {

namespace {

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

}  // namespace

MemberName split_name(std::string_view name) {
    if (name.starts_with("__")) {
        const std::string_view first = name.substr(0, name.find('/'));
        if (first.size() >= 4 && first.ends_with("__")) return {};
    }
    // memrchr looks at many bytes at once; rfind does not.
    const void* slash = name.empty() ? nullptr : ::memrchr(name.data(), '/', name.size());
    const size_t base =
        slash ? static_cast<size_t>(static_cast<const char*>(slash) - name.data()) + 1 : 0;
    const size_t dot = name.find('.', base);
    if (dot == name.npos || dot == base) return {};
    return {.key = name.substr(0, dot), .field = name.substr(dot + 1), .has_key = true};
}

void append_lowered(std::string& out, std::string_view text) {
    for (const char c : text) out += lower(c);
}

bool same_lowered(std::string_view field, std::string_view lowered) {
    return std::equal(field.begin(), field.end(), lowered.begin(), lowered.end(),
                      [](char a, char b) { return lower(a) == b; });
}

}  // namespace shf
