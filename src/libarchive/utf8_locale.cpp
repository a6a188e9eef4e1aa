#include "libarchive/utf8_locale.h"

#include "core/error.h"

namespace shf {

namespace {

locale_t make() {
    for (const char* name : {"C.UTF-8", "C.utf8", "en_US.UTF-8"})
        if (const locale_t locale = ::newlocale(LC_CTYPE_MASK, name, nullptr)) return locale;
    throw Error(SHF_E_UNSUPPORTED, "this system has no locale with UTF-8, which libarchive needs",
                "install the locale C.UTF-8");
}

locale_t utf8() {
    static const locale_t locale = make();  // never freed: a thread may have it at the end
    return locale;
}

}  // namespace

Utf8Locale::Utf8Locale() : before_(::uselocale(utf8())) {}

Utf8Locale::~Utf8Locale() {
    ::uselocale(before_);
}

Utf8Locale::Outside::Outside(const Utf8Locale* inside)
    : ours_(inside ? ::uselocale(inside->before_) : nullptr) {}

Utf8Locale::Outside::~Outside() {
    if (ours_) ::uselocale(ours_);
}

}  // namespace shf
