// The words after "video" in the option "decode" that say which frames are wanted.
#pragma once

#include "video/video_options.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace shf {

class VideoWords {
  public:
    // `text` is the whole option, which errors show; the words go into `video`. Borrows both.
    VideoWords(std::string_view text, VideoOptions& video) : text_(text), video_(video) {}

    // The next word, which begins at `at`. False: it is none of these. Throws Error(USAGE).
    bool take(size_t at, std::string_view word);
    // There are no more. Throws Error(USAGE) for words that do not go together.
    void end() const;

  private:
    static constexpr size_t none = SIZE_MAX;

    [[noreturn]] void refuse(size_t at, const std::string& cause, const std::string& help) const;
    void once(size_t& given, size_t at, const char* what) const;
    [[nodiscard]] uint64_t number_of_frames(size_t at, std::string_view value,
                                            const char* help) const;
    void take_clip(size_t at, std::string_view value);
    void take_rate(size_t at, std::string_view value);

    const std::string_view text_;
    VideoOptions& video_;
    size_t frames_ = none, clip_ = none, stride_ = none, rate_ = none, repeat_ = none;
};

}  // namespace shf
