// The words after "audio" in the option "decode".
#pragma once

#include "audio/audio_options.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace shf {

class AudioWords {
  public:
    // `text` is the whole option, which errors show; the words go into `audio`. Borrows both.
    AudioWords(std::string_view text, AudioOptions& audio) : text_(text), audio_(audio) {}

    // The next word, which begins at `at`. Throws Error(USAGE).
    void take(size_t at, std::string_view word);
    // The words end at `at`. Throws Error(USAGE).
    void end(size_t at) const;

  private:
    [[noreturn]] void refuse(size_t at, const std::string& cause, const std::string& help) const;
    void once(bool& given, size_t at, const char* what) const;
    void take_rate(size_t at, std::string_view value);
    void take_crop(size_t at, std::string_view value);

    const std::string_view text_;
    AudioOptions& audio_;
    bool has_numbers_ = false, has_layout_ = false, has_rate_ = false, has_crop_ = false;
};

}  // namespace shf
