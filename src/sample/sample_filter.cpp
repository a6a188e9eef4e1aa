#include "sample/sample_filter.h"

#include "core/options.h"
#include "sample/block.h"
#include "sample/name.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <new>

namespace shf {

namespace {

// Where the set that opens at `open` of a pattern closes, or npos. As fnmatch() reads sets: the
// first character may be a ']', a backslash quotes, and "[:alpha:]" is one element.
size_t end_of_set(std::string_view text, size_t open) {
    size_t i = open + 1;
    if (i < text.size() && (text[i] == '!' || text[i] == '^')) ++i;
    for (bool first = true; i < text.size(); ++i, first = false) {
        if (text[i] == ']' && !first) return i;
        if (text[i] == '\\') {
            ++i;
        } else if (text[i] == '[' && i + 1 < text.size() &&
                   std::string_view(":.=").find(text[i + 1]) != std::string_view::npos) {
            const std::array<char, 2> close{text[i + 1], ']'};
            const size_t end = text.find({close.data(), close.size()}, i + 2);
            if (end != text.npos) i = end + 1;
        }
    }
    return text.npos;
}

}  // namespace

FieldFilter::FieldFilter(std::string_view value) {
    const auto refuse = [&](size_t at, const char* cause) {
        refuse_text("fields", value, at, cause, "names of fields, for example \"jpg,cls\"");
    };
    for (size_t begin = 0; begin <= value.size() && !value.empty();) {
        const size_t comma = std::min(value.find(',', begin), value.size());
        size_t end = comma;
        while (begin < end && value[begin] == ' ') ++begin;
        while (begin < end && value[end - 1] == ' ') --end;
        const std::string_view name = value.substr(begin, end - begin);
        if (name.empty()) refuse(begin, "no field name");
        if (const size_t slash = name.find('/'); slash != name.npos)
            refuse(begin + slash, "a field name has no slash");
        append_lowered(names_.emplace_back(), name);
        begin = comma + 1;
    }
}

bool FieldFilter::wants(std::string_view field) const {
    return names_.empty() || std::any_of(names_.begin(), names_.end(), [&](const auto& name) {
               return same_lowered(field, name);
           });
}

SampleFilter::SampleFilter(const Options& options) : fields_(options.fields) {
    parse_patterns(options.select_keys);
    parse_slice(options.slice);
}

void SampleFilter::parse_patterns(std::string_view value) {
    if (value.empty()) return;
    const auto refuse = [&](size_t at, const char* cause) {
        refuse_text("select_keys", value, at, cause,
                    "shell patterns, for example \"train/*,val/000?\"; a backslash before a "
                    "character takes it as it is");
    };
    size_t begin = 0;
    const auto end_pattern = [&](size_t end) {
        if (end == begin) refuse(begin, "an empty pattern");
        patterns_.emplace_back(value.substr(begin, end - begin));
        begin = end + 1;
    };
    for (size_t i = 0; i < value.size(); ++i) {
        if (value[i] == ',') {
            end_pattern(i);
        } else if (value[i] == '\\') {
            if (i + 1 == value.size()) refuse(i, "a backslash with nothing after it");
            ++i;
        } else if (value[i] == '[') {
            const size_t close = end_of_set(value, i);
            if (close == value.npos) refuse(i, "a '[' without ']'");
            i = close;
        }
    }
    end_pattern(value.size());
    // Else what '?' is would hang on the locale of the program, and keys that are not text in it
    // would match nothing.
    bytes_.reset(::newlocale(LC_ALL_MASK, "C", nullptr));
    if (!bytes_) throw std::bad_alloc();
}

void SampleFilter::parse_slice(std::string_view value) {
    if (value.empty()) return;
    const auto refuse = [&](size_t at, const char* cause) {
        refuse_text("slice", value, at, cause,
                    "START:STOP or START:STOP:STEP, whole numbers that may be left out, STEP at "
                    "least 1");
    };
    const std::array<uint64_t*, 3> parts{&start_, &stop_, &step_};
    size_t begin = 0;
    for (size_t part = 0; begin <= value.size(); ++part) {
        const size_t end = std::min(value.find(':', begin), value.size());
        if (part == parts.size()) refuse(begin - 1, "more than three parts");
        if (part == 0 && end == value.size()) refuse(end, "no colon");
        if (end > begin) {
            const char* const stop = value.data() + end;
            const auto [last, error] = std::from_chars(value.data() + begin, stop, *parts[part]);
            if (error == std::errc::result_out_of_range) refuse(begin, "a number too large");
            if (error != std::errc() || last != stop)
                refuse(static_cast<size_t>(last - value.data()), "not a whole number from 0 up");
            if (part == 2 && step_ == 0) refuse(begin, "a step of 0");
        }
        begin = end + 1;
    }
}

bool SampleFilter::all() const {
    return fields_.all() && patterns_.empty() && start_ == 0 && stop_ == UINT64_MAX && step_ == 1;
}

bool SampleFilter::wants(uint64_t number, const std::string& key, const Schema& schema) const {
    if (!wants_sample(number, key)) return false;
    for (size_t i = 0; i < schema.ends.size(); ++i)
        if (wants_field(schema.name(i))) return true;
    return false;
}

bool SampleFilter::wants_sample(uint64_t number, const std::string& key) const {
    return number >= start_ && number < stop_ && (number - start_) % step_ == 0 &&
           (patterns_.empty() || matches(key));
}

bool SampleFilter::matches(const std::string& key) const {
    struct InLocale {
        explicit InLocale(locale_t locale) : before(::uselocale(locale)) {}
        ~InLocale() { ::uselocale(before); }
        InLocale(const InLocale&) = delete;
        InLocale& operator=(const InLocale&) = delete;
        const locale_t before;
    };
    const InLocale bytes(bytes_.get());
    // No key has a NUL: member names end there, or are refused.
    return std::any_of(patterns_.begin(), patterns_.end(), [&](const std::string& pattern) {
        return ::fnmatch(pattern.c_str(), key.c_str(), 0) == 0;
    });
}

}  // namespace shf
