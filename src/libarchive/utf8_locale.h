// The characters of this thread are UTF-8 while it lives: libarchive converts names to the
// characters of the locale, and a program that sets none has those of "C", which are 128. Only this
// thread is concerned, and setlocale() is never called.
#pragma once

#include <locale.h>

namespace shf {

class Utf8Locale {
  public:
    // Throws Error(UNSUPPORTED) when the system has no locale with UTF-8.
    Utf8Locale();
    ~Utf8Locale();
    Utf8Locale(const Utf8Locale&) = delete;
    Utf8Locale& operator=(const Utf8Locale&) = delete;

    // The locale from before, while code of others runs inside.
    class Outside {
      public:
        explicit Outside(const Utf8Locale* inside);  // NULL: nothing to do
        ~Outside();
        Outside(const Outside&) = delete;
        Outside& operator=(const Outside&) = delete;

      private:
        locale_t ours_;
    };

  private:
    locale_t before_;
};

}  // namespace shf
