#include "decode/npy.h"

#include "core/error.h"
#include "core/little_endian.h"
#include "decode/stored_array.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

namespace shf {

namespace {

[[noreturn]] void refuse(const std::string& cause) {
    throw Error(SHF_E_FORMAT, "not an .npy array: " + cause,
                "write the field with numpy.save, or give it another kind in decode");
}

// The header of an .npy: the literal of a Python dictionary with strings, booleans and tuples of
// whole numbers, and nothing else.
class Literal {
  public:
    explicit Literal(std::string_view text) : text_(text) {}

    bool accept(char c) {
        skip_blanks();
        if (at_ == text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    void expect(char c) {
        if (!accept(c)) fail(std::string("expected ") + c);
    }
    [[nodiscard]] char peek() {
        skip_blanks();
        return at_ < text_.size() ? text_[at_] : '\0';
    }

    std::string_view string() {
        const char quote = peek();
        if (quote != '\'' && quote != '"') fail("expected a string");
        const size_t begin = ++at_;
        at_ = std::min(text_.find(quote, begin), text_.size());
        if (at_ == text_.size()) fail("a string without end");
        return text_.substr(begin, at_++ - begin);
    }

    bool boolean() {
        skip_blanks();
        for (const auto& [word, value] : {std::pair("True", true), std::pair("False", false)})
            if (text_.substr(at_).starts_with(word)) {
                at_ += std::strlen(word);
                return value;
            }
        fail("expected True or False");
    }

    int64_t number() {
        skip_blanks();
        int64_t value = 0;
        const char* const begin = text_.data() + at_;
        const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
        if (error != std::errc() || value < 0) fail("expected a length");
        at_ += static_cast<size_t>(end - begin);
        if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote 64L
        return value;
    }

    void expect_end() {
        skip_blanks();
        if (at_ != text_.size()) fail("something after the dictionary");
    }
    [[noreturn]] void fail(const std::string& cause) const {
        refuse(cause + " at byte " + std::to_string(at_) + " of its header \"" + escape(text_) +
               "\"");
    }

  private:
    void skip_blanks() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    }

    std::string_view text_;
    size_t at_ = 0;
};

constexpr std::pair<std::string_view, DType> dtypes[] = {
    {"b1", DType::bool8}, {"i1", DType::i8},    {"i2", DType::i16}, {"i4", DType::i32},
    {"i8", DType::i64},   {"u1", DType::u8},    {"u2", DType::u16}, {"u4", DType::u32},
    {"u8", DType::u64},   {"f2", DType::f16},   {"f4", DType::f32}, {"f8", DType::f64},
    {"c8", DType::c64},   {"c16", DType::c128},
};

void parse_descr(std::string_view descr, NpyHeader& header) {
    if (descr.empty()) refuse("no dtype");
    const std::string_view orders = "<>|=";
    const bool has_order = orders.find(descr[0]) != orders.npos;
    const char order = has_order ? descr[0] : '=';
    const std::string_view code = descr.substr(has_order ? 1 : 0);
    for (const auto& [name, dtype] : dtypes) {
        if (name != code) continue;
        header.type.dtype = dtype;
        const char native = std::endian::native == std::endian::little ? '<' : '>';
        header.swapped =
            (order == '<' || order == '>') && order != native && traits_of(dtype).word > 1;
        return;
    }
    if (code.starts_with('O'))
        throw Error(SHF_E_UNSUPPORTED, "an array of Python objects is pickled, and is not read",
                    "save numbers, or take the field as bytes");
    throw Error(SHF_E_UNSUPPORTED, "dtype \"" + escape(descr) + "\" is not numeric",
                "take the field as bytes");
}

void parse_shape(Literal& literal, ArrayType& type) {
    literal.expect('(');
    type.ndim = 0;
    while (literal.peek() != ')') {
        const int64_t length = literal.number();
        if (static_cast<size_t>(type.ndim) == max_row_dimensions)
            throw Error(
                SHF_E_LIMIT,
                "an array of more than " + std::to_string(max_row_dimensions) + " dimensions",
                "take the field as bytes");
        type.shape[static_cast<size_t>(type.ndim++)] = length;
        if (!literal.accept(',')) {
            // (3) is a number to Python, not a tuple; numpy never writes it.
            if (type.ndim == 1) literal.fail("expected a comma");
            break;
        }
    }
    literal.expect(')');
}

// Copies an array of Fortran order, first index fastest, to C order.
template <size_t size>
void to_c_order(const uint8_t* in, const ArrayType& type, uint8_t* out) {
    std::array<size_t, max_row_dimensions> index{}, stride{};
    const auto ndim = static_cast<size_t>(type.ndim);
    size_t step = 1;
    for (size_t d = 0; d < ndim; ++d) {
        stride[d] = step;
        step *= static_cast<size_t>(type.shape[d]);
    }
    size_t from = 0;
    for (size_t i = 0; i < step; ++i) {
        std::memcpy(out + i * size, in + from * size, size);
        for (size_t d = ndim; d-- > 0;) {
            from += stride[d];
            if (++index[d] < static_cast<size_t>(type.shape[d])) break;
            from -= stride[d] * index[d];
            index[d] = 0;
        }
    }
}

// So many, another thread could not turn or swap sooner than this one.
constexpr uint64_t few_bytes = 4096;

class NpyDecoder final : public Decoder {
  public:
    explicit NpyDecoder(uint64_t max_decoded) : max_decoded_(max_decoded) {}

    [[nodiscard]] Measured measure(std::span<const uint8_t> field,
                                   uint64_t /*random*/) const override {
        return measure_npy(field, field.size(), max_decoded_);
    }

    [[nodiscard]] std::optional<Copied> copied(std::span<const uint8_t> start,
                                               uint64_t size) const override {
        if (npy_header_size(start) > start.size()) return std::nullopt;
        const ArrayType type = measure_npy(start, size, max_decoded_).type;
        const NpyHeader header = parse_npy(start);
        if (!header.is_as_in_memory() || type.dtype == DType::bool8) return std::nullopt;
        return Copied{type, header.data};
    }

    void decode(std::span<const uint8_t> field, uint64_t /*random*/, const ArrayType& type,
                std::span<uint8_t> out, DecodeScratch& /*scratch*/) const override {
        if (out.empty()) return;
        const NpyHeader header = parse_npy(field);
        const uint8_t* const in = field.data() + header.data;
        if (!header.is_turned()) {
            std::memcpy(out.data(), in, out.size());
        } else {
            switch (traits_of(type.dtype).size) {
                case 1: to_c_order<1>(in, type, out.data()); break;
                case 2: to_c_order<2>(in, type, out.data()); break;
                case 4: to_c_order<4>(in, type, out.data()); break;
                case 8: to_c_order<8>(in, type, out.data()); break;
                default: to_c_order<16>(in, type, out.data()); break;
            }
        }
        if (header.swapped) swap_words(out, traits_of(type.dtype).word);
        if (type.dtype == DType::bool8) make_bools(out);
    }

  private:
    const uint64_t max_decoded_;
};

}  // namespace

uint64_t npy_header_size(std::span<const uint8_t> start) {
    static constexpr uint8_t magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    if (start.size() < 10 || !std::equal(std::begin(magic), std::end(magic), start.begin()))
        refuse("it does not begin with \\x93NUMPY");
    const uint8_t version = start[6];
    if (version < 1 || version > 3 || start[7] != 0)
        throw Error(SHF_E_UNSUPPORTED,
                    ".npy version " + std::to_string(version) + "." + std::to_string(start[7]) +
                        " is not known",
                    "write the field with numpy.save");
    if (version == 1) return uint64_t{10} + le16(start.data() + 8);
    if (start.size() < 12) refuse("it ends in its header");
    return uint64_t{12} + le32(start.data() + 8);
}

NpyHeader parse_npy(std::span<const uint8_t> field) {
    const uint64_t size = npy_header_size(field);
    if (size > field.size()) refuse("it ends in its header");
    const size_t begin = field[6] == 1 ? 10 : 12;
    NpyHeader header;
    header.data = static_cast<size_t>(size);
    Literal literal({reinterpret_cast<const char*>(field.data()) + begin, header.data - begin});
    bool descr = false, order = false, shape = false;
    literal.expect('{');
    while (literal.peek() != '}') {
        const std::string_view key = literal.string();
        literal.expect(':');
        if (key == "descr" && !std::exchange(descr, true)) {
            if (literal.peek() == '[')
                throw Error(SHF_E_UNSUPPORTED, "an array of records is not read",
                            "save one array for each of its fields");
            parse_descr(literal.string(), header);
        } else if (key == "fortran_order" && !std::exchange(order, true)) {
            header.fortran_order = literal.boolean();
        } else if (key == "shape" && !std::exchange(shape, true)) {
            parse_shape(literal, header.type);
        } else {
            literal.fail("unexpected key");
        }
        if (!literal.accept(',')) break;
    }
    literal.expect('}');
    literal.expect_end();
    if (!descr || !order || !shape) refuse("its header lacks descr, fortran_order or shape");
    return header;
}

Measured measure_npy(std::span<const uint8_t> start, uint64_t size, uint64_t max_decoded) {
    const NpyHeader header = parse_npy(start);
    const uint64_t bytes = header.type.bytes();
    check_array_size(bytes, max_decoded);
    if (bytes != size - header.data)
        refuse("its header promises " + plural(bytes, "byte") + " of " + header.type.text() +
               ", and there are " + std::to_string(size - header.data));
    return {.type = header.type, .cheap = header.is_as_in_memory() || bytes <= few_bytes};
}

std::unique_ptr<Decoder> npy_decoder(uint64_t max_decoded) {
    return std::make_unique<NpyDecoder>(max_decoded);
}

}  // namespace shf
