#include "libarchive/libarchive.h"

#include "core/dynamic_library.h"

#include <string>

namespace shf {

namespace {

Libarchive load_libarchive() {
    // Its soname since version 3.1 of 2013.
    const DynamicLibrary library(
        "libarchive", "libarchive.so.13",
        "install libarchive13 or libarchive13t64 (Debian, Ubuntu) or libarchive (Fedora), version "
        "3.4 or later");
    Libarchive functions;
    library.find("archive_entry_filetype", functions.entry_filetype);
    library.find("archive_entry_gid", functions.entry_gid);
    library.find("archive_entry_gname", functions.entry_gname);
    library.find("archive_entry_hardlink", functions.entry_hardlink);
    library.find("archive_entry_is_data_encrypted", functions.entry_is_data_encrypted);
    library.find("archive_entry_mtime", functions.entry_mtime);
    library.find("archive_entry_mtime_is_set", functions.entry_mtime_is_set);
    library.find("archive_entry_mtime_nsec", functions.entry_mtime_nsec);
    library.find("archive_entry_nlink", functions.entry_nlink);
    library.find("archive_entry_pathname", functions.entry_pathname);
    library.find("archive_entry_perm", functions.entry_perm);
    library.find("archive_entry_size", functions.entry_size);
    library.find("archive_entry_size_is_set", functions.entry_size_is_set);
    library.find("archive_entry_symlink", functions.entry_symlink);
    library.find("archive_entry_uid", functions.entry_uid);
    library.find("archive_entry_uname", functions.entry_uname);
    library.find("archive_errno", functions.error_number);
    library.find("archive_error_string", functions.error_string);
    library.find("archive_filter_bytes", functions.filter_bytes);
    library.find("archive_read_data_block", functions.read_data_block);
    library.find("archive_read_free", functions.read_free);
    library.find("archive_read_has_encrypted_entries", functions.read_has_encrypted_entries);
    library.find("archive_read_new", functions.read_new);
    library.find("archive_read_next_header", functions.read_next_header);
    library.find("archive_read_open1", functions.read_open1);
    library.find("archive_read_set_callback_data", functions.read_set_callback_data);
    library.find("archive_read_set_read_callback", functions.read_set_read_callback);
    library.find("archive_read_set_seek_callback", functions.read_set_seek_callback);
    library.find("archive_read_set_skip_callback", functions.read_set_skip_callback);
    library.find("archive_read_support_format_7zip", functions.read_support_format_7zip);
    library.find("archive_read_support_format_cpio", functions.read_support_format_cpio);
    library.find("archive_read_support_format_iso9660", functions.read_support_format_iso9660);
    library.find("archive_read_support_format_rar", functions.read_support_format_rar);
    library.find("archive_read_support_format_rar5", functions.read_support_format_rar5);
    library.find("archive_version_string", functions.version_string);
    library.find("archive_version_number", functions.version_number);
    // RAR 5 came with it.
    if (functions.version_number() < 3004000)
        library.refuse(std::string("it is ") + functions.version_string());
    return functions;
}

}  // namespace

const Libarchive& libarchive() {
    static const Libarchive functions = load_libarchive();
    return functions;
}

}  // namespace shf
