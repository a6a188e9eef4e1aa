// pax extended headers (POSIX.1-2017, pax Interchange Format, "pax Extended Header"): records
// "LENGTH KEY=VALUE\n", where LENGTH counts the whole record and VALUE may hold newlines.
#include "tar/tar.h"
#include "tar/tar_metadata.h"

#include <charconv>

namespace shf {

namespace {

[[noreturn]] void broken(uint64_t offset, std::string cause) {
    throw Error(SHF_E_FORMAT, "pax header: " + std::move(cause),
                "the archive is damaged, or its writer is; write it again", offset);
}

// Keys whose values nobody here uses and that real writers leave empty or fill with bytes.
bool free_form(std::string_view key) {
    for (std::string_view prefix : {"SCHILY.xattr.", "LIBARCHIVE.xattr."})
        if (key.starts_with(prefix)) return true;
    return false;
}

bool unused(std::string_view key) {
    for (std::string_view name : {"uname", "gname", "uid", "gid", "atime", "mtime", "ctime"})
        if (key == name) return true;
    return free_form(key);
}

}  // namespace

void parse_pax(std::string_view body, bool global, uint64_t offset, PaxRecords& records,
               PaxFields* fields) {
    while (!body.empty()) {
        uint64_t length = 0;
        const char* first = body.data();
        const auto [end, error] = std::from_chars(first, first + body.size(), length);
        const auto digits = static_cast<size_t>(end - first);
        if (error != std::errc() || digits == 0 || digits == body.size() || *end != ' ')
            broken(offset, "a record without a decimal length and a blank");
        if (length > body.size() || length < digits + 3)
            broken(offset, "a record of " + plural(length, "byte") + " where " +
                               std::to_string(body.size()) + " are left");
        const std::string_view record = body.substr(0, static_cast<size_t>(length));
        if (record.back() != '\n') broken(offset, "a record that does not end in a newline");
        body.remove_prefix(record.size());
        const std::string_view text = record.substr(digits + 1, record.size() - digits - 2);
        const size_t equals = text.find('=');
        if (equals == text.npos) broken(offset, "a record without '='");
        if (equals == 0) broken(offset, "a record with an empty key");
        const std::string_view key = text.substr(0, equals), value = text.substr(equals + 1);
        if (key.find('\0') != key.npos) broken(offset, "a NUL in a key");
        if (value.find('\0') != value.npos && !free_form(key))
            broken(offset, "a NUL in the value of \"" + escape(key) + "\"");
        if (value.empty() && !unused(key))
            broken(offset, "an empty value of \"" + escape(key) + "\"");
        const bool sparse = key.starts_with("GNU.sparse.");
        if (global && (sparse || key == "path" || key == "linkpath" || key == "size"))
            broken(offset,
                   "a global header that sets \"" + std::string(key) + "\" for every later member");
        if (fields) fields->take(key, value);
        // A key that is repeated in one header: the last one holds.
        if (key == "path" && !records.sparse_name) records.path = value;
        if (key == "linkpath") records.linkpath = value;
        if (key == "size") {
            uint64_t size = 0;
            const auto [stop, bad] =
                std::from_chars(value.data(), value.data() + value.size(), size);
            if (bad != std::errc() || stop != value.data() + value.size())
                broken(offset, "size \"" + escape(value) + "\" is not a decimal number");
            records.size = size;
        }
        if (sparse) {
            records.sparse = true;
            // Versions 0.1 and 1.0 keep the real name here; header and "path" have a made-up one.
            if (key == "GNU.sparse.name") {
                records.sparse_name = true;
                records.path = value;
            }
        }
    }
}

}  // namespace shf
