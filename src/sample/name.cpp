#include "sample/name.h"

namespace shf {

MemberName split_name(std::string_view name) {
    if (name.starts_with("__")) {
        const std::string_view first = name.substr(0, name.find('/'));
        if (first.size() >= 4 && first.ends_with("__")) return {};
    }
    const size_t slash = name.rfind('/');
    const size_t base = slash == name.npos ? 0 : slash + 1;
    const size_t dot = name.find('.', base);
    if (dot == name.npos || dot == base) return {};
    return {.key = name.substr(0, dot), .field = name.substr(dot + 1), .has_key = true};
}

}  // namespace shf
