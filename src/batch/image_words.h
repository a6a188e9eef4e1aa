// The words of an image in the option "decode": those between slashes after "image", and
// after "video" for each of its frames.
#pragma once

#include "batch/decode_spec.h"
#include "image/image_options.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace shf {

// Of one column. `text` is the whole option, which errors point into.
class ImageWords {
  public:
    explicit ImageWords(std::string_view text) : text_(text) {}

    // They are those of the frames of a video: without what is of files of images or of rows that
    // are mixed.
    void of_video() { is_video_ = true; }
    // The word that begins at `at`. Throws Error(USAGE).
    void add(size_t at, std::string_view word);
    // There are no more. Throws Error(USAGE) for words that do not go together.
    [[nodiscard]] ImageOptions finish() const;
    // How often the image is wanted; 0: once, as a column of the field's name.
    [[nodiscard]] uint32_t views() const { return views_; }
    [[nodiscard]] RowMixing mixing() const { return mixing_; }

  private:
    // Where a word of each kind was given; `none` when it was not.
    static constexpr size_t none = SIZE_MAX;
    struct Given {
        size_t mode = none, number = none, layout = none, normalize = none, exif = none;
        size_t resize = none, crop = none, rrc = none, flip = none, pad = none;
        size_t filter = none, exact = none, scale = none, ratio = none, fill = none;
        size_t brightness = none, contrast = none, saturation = none, hue = none;
        size_t jitter = none, grayscale = none, blur = none, solarize = none;
        size_t augment = none, mask = none, sigma = none, kernel = none, views = none;
        size_t mixup = none, cutmix = none;
    };
    enum class Number : uint8_t { none, uint8, float32, float16, bfloat16 };
    struct Value {
        size_t at;
        std::string_view text;
    };

    [[noreturn]] void refuse(size_t at, const std::string& cause, const std::string& help) const;
    bool add_step(size_t at, std::string_view name, const Value& value);
    bool add_detail(size_t at, std::string_view name, const Value& value);
    bool add_colour(size_t at, std::string_view name, const Value& value);
    void check_mask(const ImageOptions& image) const;
    bool add_augment(size_t at, std::string_view name, const Value& value);
    bool add_mixing(size_t at, std::string_view name, const Value& value);
    void parse_kernel(const Value& value);
    void parse_views(const Value& value);
    void once(size_t& given, size_t at, const char* what) const;
    [[nodiscard]] std::pair<uint32_t, uint32_t> parse_size(const Value& value, bool one,
                                                           const char* help) const;
    [[nodiscard]] double parse_number(const Value& value, const char* help) const;
    [[nodiscard]] ImageOptions::Range parse_range(const Value& value, double least,
                                                  const char* help) const;
    void parse_resize(Value value);
    void parse_crop(Value value);
    void parse_pad(Value value);
    void parse_normalize(const Value& value);

    std::string_view text_;
    bool is_video_ = false;
    ImageOptions image_;
    Number number_ = Number::none;
    uint32_t views_ = 0;
    RowMixing mixing_;
    size_t normalized_ = 0;  // the channels that it names; 0: a set of colours
    Given given_;
};

}  // namespace shf
