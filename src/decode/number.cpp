#include "decode/number.h"

#include "core/error.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>

namespace shf {

namespace {

constexpr const char* other_kind_help = "correct the field, or give it another kind in decode";

bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

// A number that from_chars() says is out of range: 0 or infinity, with its sign. It is large when
// the exponent of its first digit is above 0.
double rounded(std::string_view digits) {
    const bool negative = digits.starts_with('-');
    if (negative) digits.remove_prefix(1);
    const size_t e = std::min(digits.find_first_of("eE"), digits.size());
    int64_t exponent = 0;
    if (e < digits.size()) {
        std::string_view power = digits.substr(e + 1);
        const bool below = power.starts_with('-');
        if (below || power.starts_with('+')) power.remove_prefix(1);
        const auto [end, error] =
            std::from_chars(power.data(), power.data() + power.size(), exponent);
        constexpr int64_t far = int64_t{1} << 62;  // no field has so many digits
        if (error != std::errc()) exponent = far;
        if (below) exponent = -exponent;
    }
    const std::string_view mantissa = digits.substr(0, e);
    const size_t point = std::min(mantissa.find('.'), mantissa.size());
    const size_t first = std::min(mantissa.find_first_of("123456789"), mantissa.size());
    const auto place = static_cast<int64_t>(point) - static_cast<int64_t>(first);
    const double number = exponent + place > 0 ? std::numeric_limits<double>::infinity() : 0.0;
    return negative ? -number : number;
}

template <typename Number>
class NumberDecoder final : public Decoder {
  public:
    NumberDecoder(DType dtype, const char* what) : type_{.dtype = dtype}, what_(what) {}

    [[nodiscard]] Measured measure(std::span<const uint8_t> /*field*/,
                                   uint64_t /*random*/) const override {
        return {.type = type_, .cheap = true};
    }

    void decode(std::span<const uint8_t> field, uint64_t /*random*/, const ArrayType& /*type*/,
                std::span<uint8_t> out, DecodeScratch& /*scratch*/) const override {
        std::string_view text(reinterpret_cast<const char*>(field.data()), field.size());
        while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
        while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
        std::string_view digits = text;
        if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
        Number number{};
        const char* const stop = digits.data() + digits.size();
        const auto [end, error] = std::from_chars(digits.data(), stop, number);
        // As float() of Python: beyond the largest number is infinity, below the smallest one 0.
        const bool too_far = error == std::errc::result_out_of_range && end == stop;
        if (std::is_floating_point_v<Number> && too_far)
            number = rounded(digits);
        else if (too_far)
            throw Error(SHF_E_FORMAT, "\"" + escape(text) + "\" does not fit " + what_,
                        other_kind_help);
        else if (error != std::errc() || end != stop)
            throw Error(SHF_E_FORMAT, "\"" + escape(text) + "\" is not " + what_, other_kind_help);
        std::memcpy(out.data(), &number, sizeof number);
    }

  private:
    const ArrayType type_;
    const char* const what_;
};

}  // namespace

std::unique_ptr<Decoder> integer_decoder() {
    return std::make_unique<NumberDecoder<int64_t>>(DType::i64, "a whole number of 64 bits");
}

std::unique_ptr<Decoder> real_decoder() {
    return std::make_unique<NumberDecoder<double>>(DType::f64, "a number of float64");
}

}  // namespace shf
