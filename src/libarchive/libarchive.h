// libarchive, loaded when the first archive is opened that only it reads.
#pragma once

#include <archive.h>
#include <archive_entry.h>

namespace shf {

// Its functions, under their names without "archive_".
struct Libarchive {
    decltype(&archive_entry_filetype) entry_filetype;
    decltype(&archive_entry_gid) entry_gid;
    decltype(&archive_entry_gname) entry_gname;
    decltype(&archive_entry_hardlink) entry_hardlink;
    decltype(&archive_entry_is_data_encrypted) entry_is_data_encrypted;
    decltype(&archive_entry_mtime) entry_mtime;
    decltype(&archive_entry_mtime_is_set) entry_mtime_is_set;
    decltype(&archive_entry_mtime_nsec) entry_mtime_nsec;
    decltype(&archive_entry_nlink) entry_nlink;
    decltype(&archive_entry_pathname) entry_pathname;
    decltype(&archive_entry_perm) entry_perm;
    decltype(&archive_entry_size) entry_size;
    decltype(&archive_entry_size_is_set) entry_size_is_set;
    decltype(&archive_entry_symlink) entry_symlink;
    decltype(&archive_entry_uid) entry_uid;
    decltype(&archive_entry_uname) entry_uname;
    decltype(&archive_errno) error_number;
    decltype(&archive_error_string) error_string;
    decltype(&archive_filter_bytes) filter_bytes;
    decltype(&archive_read_data_block) read_data_block;
    decltype(&archive_read_free) read_free;
    decltype(&archive_read_has_encrypted_entries) read_has_encrypted_entries;
    decltype(&archive_read_new) read_new;
    decltype(&archive_read_next_header) read_next_header;
    decltype(&archive_read_open1) read_open1;
    decltype(&archive_read_set_callback_data) read_set_callback_data;
    decltype(&archive_read_set_read_callback) read_set_read_callback;
    decltype(&archive_read_set_seek_callback) read_set_seek_callback;
    decltype(&archive_read_set_skip_callback) read_set_skip_callback;
    decltype(&archive_read_support_format_7zip) read_support_format_7zip;
    decltype(&archive_read_support_format_cpio) read_support_format_cpio;
    decltype(&archive_read_support_format_iso9660) read_support_format_iso9660;
    decltype(&archive_read_support_format_rar) read_support_format_rar;
    decltype(&archive_read_support_format_rar5) read_support_format_rar5;
    decltype(&archive_version_string) version_string;
    decltype(&archive_version_number) version_number;
};

// Loads it at the first call. Throws Error(UNSUPPORTED) when the system has none that can be used.
// It is never unloaded.
const Libarchive& libarchive();

}  // namespace shf
