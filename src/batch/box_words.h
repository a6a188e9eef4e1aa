// The words after "boxes" in the option "decode".
#pragma once

#include "decode/box_options.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace shf {

class BoxWords {
  public:
    // `text` is the whole option, which errors show; the words go into `boxes`. Borrows both.
    BoxWords(std::string_view text, BoxOptions& boxes) : text_(text), boxes_(boxes) {}

    // The next word, which begins at `at`. Throws Error(USAGE).
    void take(size_t at, std::string_view word);
    // The words end at `at`. Throws Error(USAGE).
    void end(size_t at) const;
    // The column of the image that the boxes are of, and where it is named.
    [[nodiscard]] std::string_view image() const { return image_; }
    [[nodiscard]] size_t image_at() const { return image_at_; }

  private:
    [[noreturn]] void refuse(size_t at, const std::string& cause, const std::string& help) const;
    void once(bool& given, size_t at, const char* what) const;
    void take_path(size_t at, std::string_view path);

    const std::string_view text_;
    BoxOptions& boxes_;
    std::string_view image_;
    size_t image_at_ = 0;
    bool has_format_ = false, has_path_ = false, has_image_ = false;
};

}  // namespace shf
