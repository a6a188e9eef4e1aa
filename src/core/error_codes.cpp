#include "core/error_codes.h"

#include <shardfeed.h>

namespace shf {

namespace {

struct CodeText {
    int32_t code;
    const char* name;
    const char* text;
};

constexpr CodeText code_texts[] = {
    {SHF_OK, "OK", "success"},
    {SHF_END, "END", "the sequence is complete"},
    {SHF_E_FORMAT, "FORMAT", "the bytes break the rules of the container or codec"},
    {SHF_E_TRUNCATED, "TRUNCATED", "input ended before its end was proven"},
    {SHF_E_INTEGRITY, "INTEGRITY", "a checksum over data is wrong"},
    {SHF_E_LIMIT, "LIMIT", "a configured bound was reached"},
    {SHF_E_UNSUPPORTED, "UNSUPPORTED", "valid, but not implemented or switched off"},
    {SHF_E_AMBIGUOUS, "AMBIGUOUS", "conforming readers could see different contents"},
    {SHF_E_CHANGED, "CHANGED", "the file became another version during the read"},
    {SHF_E_NET_TRANSIENT, "NET_TRANSIENT", "the retry budget was spent on a fault that may pass"},
    {SHF_E_NET_PERMANENT, "NET_PERMANENT", "the answer of the server will not change"},
    {SHF_E_THROTTLED, "THROTTLED", "the server asks for a longer pause than allowed"},
    {SHF_E_AUTH, "AUTH", "credentials are missing, refused or expired"},
    {SHF_E_TLS, "TLS", "certificate or host name refused"},
    {SHF_E_IO, "IO", "operating-system error"},
    {SHF_E_NOSPACE, "NOSPACE", "disk full or quota reached"},
    {SHF_E_NOMEM, "NOMEM", "out of memory"},
    {SHF_E_CANCELLED, "CANCELLED", "cancelled"},
    {SHF_E_TIMEOUT, "TIMEOUT", "a time limit ran out"},
    {SHF_E_CHILD, "CHILD", "a child process failed"},
    {SHF_E_USAGE, "USAGE", "wrong call"},
    {SHF_E_FORKED, "FORKED", "the handle belongs to the parent process"},
    {SHF_E_NOT_FOUND, "NOT_FOUND", "no such thing"},
    {SHF_E_INTERNAL, "INTERNAL", "a bug in shardfeed"},
};

const CodeText* find_code(int32_t code) noexcept {
    for (const CodeText& row : code_texts)
        if (row.code == code) return &row;
    return nullptr;
}

}  // namespace

const char* name_of_code(int32_t code) noexcept {
    const CodeText* row = find_code(code);
    return row ? row->name : "UNKNOWN";
}

const char* text_of_code(int32_t code) noexcept {
    const CodeText* row = find_code(code);
    return row ? row->text : "unknown error code";
}

}  // namespace shf
