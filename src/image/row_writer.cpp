#include "image/row_writer.h"

#include "image/small_floats.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace shf {

namespace {

// The numbers of a mode, each a type of its own.
struct Float16 {
    uint16_t bits;
};
struct BFloat16 {
    uint16_t bits;
};

template <typename To>
To to_number(float number) {
    if constexpr (std::is_same_v<To, float>)
        return number;
    else if constexpr (std::is_same_v<To, Float16>)
        return {to_float16(number)};
    else
        return {to_bfloat16(number)};
}

template <typename With>
void for_numbers(DType dtype, const With& with) {
    switch (dtype) {
        case DType::u8: return with.template operator()<uint8_t>();
        case DType::u16: return with.template operator()<uint16_t>();
        case DType::f16: return with.template operator()<Float16>();
        case DType::bf16: return with.template operator()<BFloat16>();
        default: return with.template operator()<float>();
    }
}

// What makes numbers of samples. Integers of the same size are copied; no mode makes 8 bits of 16.
template <typename From, typename To>
struct Conversion {
    const SampleNumbers& numbers;

    [[nodiscard]] To operator()(From sample, size_t channel) const {
        if constexpr (std::is_integral_v<To> && sizeof(From) >= sizeof(To))
            return static_cast<To>(sample);
        else if constexpr (sizeof(From) == 1)
            return numbers.table<To>(channel)[sample];
        else
            return to_number<To>(numbers.of(sample, channel));
    }
};

// One row to `out`, whose channels lie `plane` numbers apart, and pixels `step`. InChannels is 1 or
// OutChannels.
template <size_t InChannels, size_t OutChannels, typename From, typename To>
void convert_row(const Conversion<From, To>& conversion, const From* in, size_t width, To* out,
                 size_t plane, size_t step) {
    if constexpr (std::is_same_v<From, To> && InChannels == OutChannels)
        if (plane == 1) return void(std::memcpy(out, in, width * OutChannels * sizeof(To)));
    for (size_t x = 0; x < width; ++x)
        for (size_t c = 0; c < OutChannels; ++c)
            out[x * step + c * plane] =
                conversion(in[x * InChannels + (InChannels == 1 ? 0 : c)], c);
}

template <typename From, typename To>
void convert_channels(const SampleNumbers& numbers, const From* in, const Pixels& shape,
                      size_t channels, To* out, size_t plane, size_t step) {
    const Conversion<From, To> conversion{numbers};
    switch (shape.channels * 10 + channels) {
        case 11: return convert_row<1, 1>(conversion, in, shape.width, out, plane, step);
        case 13: return convert_row<1, 3>(conversion, in, shape.width, out, plane, step);
        case 33: return convert_row<3, 3>(conversion, in, shape.width, out, plane, step);
        case 44: return convert_row<4, 4>(conversion, in, shape.width, out, plane, step);
        default: return;  // no mode has these
    }
}

}  // namespace

SampleNumbers::SampleNumbers(const ImageOptions& options) {
    for (size_t c = 0; c < 3; ++c) {
        mean_[c] = static_cast<float>(options.normalize.mean[c]);
        deviation_[c] = static_cast<float>(options.normalize.deviation[c]);
    }
    for_numbers(traits_of(options).dtype, [&]<typename To>() {
        constexpr size_t channels = 4, values = 256;
        tables_.resize(channels * values * sizeof(To) / sizeof(uint32_t));
        for (size_t c = 0; c < channels; ++c)
            for (size_t value = 0; value < values; ++value) {
                To number;
                if constexpr (std::is_integral_v<To>)
                    number = static_cast<To>(value * (sizeof(To) == 1 ? 1 : 257));
                else
                    number = to_number<To>(normal(static_cast<float>(value) / 255.0F, c));
                std::memcpy(reinterpret_cast<To*>(tables_.data()) + c * values + value, &number,
                            sizeof number);
            }
    });
}

RowWriter::RowWriter(const ImageOptions& options, const SampleNumbers& numbers,
                     const ImageGeometry& plan, const Pixels& shape, std::vector<uint8_t>& line,
                     std::span<uint8_t> out)
    : options_(options),
      numbers_(numbers),
      plan_(plan),
      mode_(traits_of(options)),
      shape_(shape),
      left_(plan.flipped ? plan.result_width - plan.left - shape.width : plan.left),
      is_straight_(
          traits_of(mode_.dtype).kind == 'u' && traits_of(mode_.dtype).size * 8 == shape.depth &&
          shape.channels == mode_.channels && (mode_.channels == 1 || !options.channels_first)),
      line_(line),
      out_(out) {
    line_.resize(shape.stride());
}

void RowWriter::pad() {
    if (!plan_.is_padded()) return;
    const size_t plane = size_t{plan_.result_width} * plan_.result_height;
    for_numbers(mode_.dtype, [&]<typename To>() {
        auto* const out = reinterpret_cast<To*>(out_.data());
        for (size_t c = 0; c < mode_.channels; ++c) {
            // Alpha is opaque there.
            const To number = numbers_.table<To>(c)[c == 3 ? 255 : options_.fill];
            if (options_.channels_first || mode_.channels == 1)
                std::fill_n(out + c * plane, plane, number);
            else
                for (size_t i = 0; i < plane; ++i) out[i * mode_.channels + c] = number;
        }
    });
}

uint8_t* RowWriter::straight(uint32_t y) const {
    const size_t pixel = shape_.pixel_size();
    return out_.data() + ((plan_.top + size_t{y}) * plan_.result_width + left_) * pixel;
}

uint8_t* RowWriter::row(uint32_t y) {
    return is_straight_ ? straight(y) : line_.data();
}

void RowWriter::done(uint32_t y) {
    Pixels pixels = shape_;
    pixels.height = 1;
    pixels.data = row(y);
    if (plan_.flipped) flip(pixels);
    if (!is_straight_) convert(y, pixels.data);
}

void RowWriter::convert(uint32_t y, const uint8_t* in) {
    const bool planes = options_.channels_first;
    const size_t plane = planes ? size_t{plan_.result_width} * plan_.result_height : 1;
    const size_t step = planes ? 1 : mode_.channels;
    const size_t first = ((plan_.top + size_t{y}) * plan_.result_width + left_) * step;
    for_numbers(mode_.dtype, [&]<typename To>() {
        auto* const out = reinterpret_cast<To*>(out_.data()) + first;
        if (shape_.depth == 8)
            convert_channels(numbers_, in, shape_, mode_.channels, out, plane, step);
        else
            convert_channels(numbers_, reinterpret_cast<const uint16_t*>(in), shape_,
                             mode_.channels, out, plane, step);
    });
}

}  // namespace shf
