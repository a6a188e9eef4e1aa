#include "io/prepared_file.h"

#include "core/error.h"
#include "io/file_sink.h"
#include "io/sources.h"
#include "url/scheme.h"

#include <algorithm>

namespace shf {

namespace {

bool is_path(const std::string& url) {
    const std::string scheme = scheme_of(url);
    return scheme.empty() || scheme == "file";
}

// Who wrote it.
const Scheme& scheme_that_writes(const std::string& url, const SourceContext& context) {
    const Scheme* const found = Sources::scheme_for(url, context.options);
    if (!found || !found->publish)
        throw Error(SHF_E_USAGE, "shards are not prepared at " + scheme_of(url) + ": URLs",
                    "give what a writer has made");
    return *found;
}

bool is_digit_of_name(char c) {
    return c >= '0' && c <= '9';
}

// The bytes of "%d" or "%06d" at the start of a text; 0: it does not begin with one.
size_t number_place(std::string_view text) {
    if (text.empty() || text[0] != '%') return 0;
    size_t at = 1;
    while (at < text.size() && is_digit_of_name(text[at])) ++at;
    return at < text.size() && text[at] == 'd' ? at + 1 : 0;
}

}  // namespace

void publish_prepared(const PreparedFile& file, const SourceContext& context) {
    if (is_path(file.url)) return publish_prepared_path(file, context.options);
    scheme_that_writes(file.url, context).publish(file, context);
}

void discard_prepared(const PreparedFile& file, const SourceContext& context) {
    if (is_path(file.url)) return discard_prepared_path(file);
    scheme_that_writes(file.url, context).discard(file, context);
}

void discard_left(const std::string& pattern, const SourceContext& context) {
    if (!is_path(pattern)) scheme_that_writes(pattern, context).discard_left(pattern, context);
}

bool is_of_pattern(std::string_view name, std::string_view pattern) {
    while (!pattern.empty()) {
        if (const size_t place = number_place(pattern); place > 0) {
            const auto end = std::find_if_not(name.begin(), name.end(), is_digit_of_name);
            if (end == name.begin()) return false;
            name.remove_prefix(static_cast<size_t>(end - name.begin()));
            pattern.remove_prefix(place);
            continue;
        }
        if (pattern.starts_with("%%")) pattern.remove_prefix(1);
        if (name.empty() || name[0] != pattern[0]) return false;
        name.remove_prefix(1);
        pattern.remove_prefix(1);
    }
    return name.empty();
}

std::string start_of_pattern(std::string_view pattern) {
    std::string start;
    while (!pattern.empty() && number_place(pattern) == 0) {
        if (pattern.starts_with("%%")) pattern.remove_prefix(1);
        start += pattern[0];
        pattern.remove_prefix(1);
    }
    return start;
}

}  // namespace shf
