#include "core/error.h"
#include "core/error_codes.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

namespace shf {

namespace {

constexpr size_t longest_shard = 400;  // bytes of a URL in a message

// Length of the valid UTF-8 sequence at the start of `bytes`, 0 when there is none (RFC 3629).
size_t utf8_length(std::string_view bytes) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
    const unsigned char first = byte(0);
    size_t length = 0;
    unsigned char low = 0x80, high = 0xbf;  // bounds of the second byte
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first <= 0xdf) {
        length = 2;
    } else if (first >= 0xe0 && first <= 0xef) {
        length = 3;
        if (first == 0xe0) low = 0xa0;
        if (first == 0xed) high = 0x9f;
    } else if (first >= 0xf0 && first <= 0xf4) {
        length = 4;
        if (first == 0xf0) low = 0x90;
        if (first == 0xf4) high = 0x8f;
    } else {
        return 0;
    }
    if (bytes.size() < length || byte(1) < low || byte(1) > high) return 0;
    for (size_t i = 2; i < length; ++i)
        if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
    return length;
}

}  // namespace

bool is_utf8(std::string_view bytes) noexcept {
    while (!bytes.empty()) {
        const size_t length = utf8_length(bytes);
        if (length == 0) return false;
        bytes.remove_prefix(length);
    }
    return true;
}

std::string plural(uint64_t count, std::string_view noun) {
    return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string escape(std::string_view bytes) {
    constexpr size_t longest = 200;
    static constexpr char hex[] = "0123456789abcdef";
    const bool cut = bytes.size() > longest;
    if (cut) bytes = bytes.substr(0, longest);
    std::string out;
    out.reserve(bytes.size());
    while (!bytes.empty()) {
        const auto c = static_cast<unsigned char>(bytes[0]);
        size_t length = utf8_length(bytes);
        // C1 controls (U+0080 to U+009F) start terminal sequences on some terminals.
        const bool c1 = length == 2 && c == 0xc2 && static_cast<unsigned char>(bytes[1]) < 0xa0;
        if (length == 0 || c < 0x20 || c == 0x7f || c == '\\' || c == '"' || c1) {
            length = std::max<size_t>(length, 1);
            for (size_t i = 0; i < length; ++i) {
                const auto b = static_cast<unsigned char>(bytes[i]);
                out += {'\\', 'x', hex[b >> 4], hex[b & 15]};
            }
        } else {
            out.append(bytes.substr(0, length));
        }
        bytes.remove_prefix(length);
    }
    if (cut) out += "...";
    return out;
}

std::string Fault::text() const {
    std::string text;
    if (shard.size() > longest_shard) {
        // Both ends tell: where it comes from, and which one it is. The cause must still fit.
        text += shard.substr(0, longest_shard / 2) + "..." +
                shard.substr(shard.size() - longest_shard / 2) + ": ";
    } else if (!shard.empty()) {
        text += shard + ": ";
    }
    if (!member.empty()) text += "member \"" + member + "\": ";
    if (offset != no_offset) text += "at byte " + std::to_string(offset) + ": ";
    text += cause.empty() ? text_of_code(code) : cause;
    if (!help.empty()) text += "; help: " + help;
    return text;
}

Error::Error(Fault fault) : fault_(std::move(fault)), text_(fault_.text()) {}

Error::Error(int32_t code, std::string cause, std::string help, uint64_t offset)
    : Error(Fault{.code = code,
                  .offset = offset,
                  .shard = {},
                  .member = {},
                  .cause = std::move(cause),
                  .help = std::move(help)}) {}

Error Error::system(std::string_view doing, int number) {
    const bool full = number == ENOSPC || number == EDQUOT;
    return Error(Fault{.code = number == ENOMEM ? SHF_E_NOMEM
                               : full           ? SHF_E_NOSPACE
                                                : SHF_E_IO,
                       .os_error = number,
                       .shard = {},
                       .member = {},
                       .cause = std::string(doing) + ": " + std::generic_category().message(number),
                       .help = {}});
}

void drop_skips(Fault& fault) noexcept {
    const size_t last = fault.help.rfind(", or ");
    if (last != fault.help.npos && fault.help.find("on_error=", last) != fault.help.npos)
        fault.help.erase(last);
}

bool skippable(int32_t code) noexcept {
    switch (code) {
        case SHF_E_FORMAT:
        case SHF_E_TRUNCATED:
        case SHF_E_INTEGRITY:
        case SHF_E_LIMIT:
        case SHF_E_UNSUPPORTED:
        case SHF_E_AMBIGUOUS:
        case SHF_E_CHANGED:
        case SHF_E_NET_TRANSIENT:
        case SHF_E_NET_PERMANENT:
        case SHF_E_THROTTLED:
        case SHF_E_IO:
        case SHF_E_CHILD: return true;
        default: return false;
    }
}

Fault describe_exception() noexcept {
    Fault fault;
    try {
        try {
            throw;
        } catch (const Error& error) {
            fault.code = error.code();
            fault.os_error = error.fault().os_error;
            fault.offset = error.fault().offset;
            fault = error.fault();
        } catch (const std::bad_alloc&) {
            fault.code = SHF_E_NOMEM;
        } catch (const std::system_error& error) {
            fault.code = error.code() == std::errc::not_enough_memory ? SHF_E_NOMEM : SHF_E_IO;
            fault.os_error = error.code().value();
            fault.cause = error.what();
        } catch (const std::exception& error) {
            fault.cause = error.what();
        }
    } catch (...) {  // no memory for the texts, or not an exception of ours at all
    }
    return fault;
}

void write_error(shf_error* out, const Fault& fault) noexcept {
    if (out == nullptr) return;
    out->code = fault.code;
    out->os_error = fault.os_error;
    out->offset = fault.offset;
    std::string_view text = "out of memory while describing an error";
    std::string owned;
    try {
        owned = fault.text();
        text = owned;
    } catch (...) {
        text = text_of_code(fault.code);
    }
    size_t size = std::min(text.size(), sizeof out->message - 1);
    if (size < text.size())  // do not cut inside a UTF-8 sequence
        while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
    std::memcpy(out->message, text.data(), size);
    std::memset(out->message + size, 0, sizeof out->message - size);
}

}  // namespace shf
