#include "decode/number.h"

#include "core/error.h"

#include <charconv>
#include <cstring>
#include <string_view>

namespace shf {

namespace {

constexpr const char* other_kind = "correct the field, or give it another kind in decode";

bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
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
        if (error == std::errc::result_out_of_range)
            throw Error(SHF_E_FORMAT, "\"" + escape(text) + "\" does not fit " + what_, other_kind);
        if (error != std::errc() || end != stop)
            throw Error(SHF_E_FORMAT, "\"" + escape(text) + "\" is not " + what_, other_kind);
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
