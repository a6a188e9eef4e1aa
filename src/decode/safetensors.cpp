#include "decode/safetensors.h"

#include "core/error.h"
#include "core/little_endian.h"
#include "decode/stored_array.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace shf {

namespace {

constexpr size_t tensors_length_size = 8;                // of the length of the header
constexpr uint64_t longest_tensor_header = 100'000'000;  // as in the package safetensors
constexpr const char* tensors_help =
    "write the field again with the package safetensors, or give it another kind in decode";

[[noreturn]] void refuse_tensors(const std::string& cause) {
    throw Error(SHF_E_FORMAT, "not safetensors: " + cause, tensors_help);
}

struct TensorDType {
    std::string_view name;
    uint64_t bits;
    std::optional<DType> dtype;  // none: a column cannot have it
};
constexpr TensorDType tensor_dtypes[] = {
    {"BOOL", 8, DType::bool8},    {"U8", 8, DType::u8},         {"I8", 8, DType::i8},
    {"I16", 16, DType::i16},      {"U16", 16, DType::u16},      {"F16", 16, DType::f16},
    {"BF16", 16, DType::bf16},    {"I32", 32, DType::i32},      {"U32", 32, DType::u32},
    {"F32", 32, DType::f32},      {"F64", 64, DType::f64},      {"I64", 64, DType::i64},
    {"U64", 64, DType::u64},      {"C64", 64, DType::c64},      {"F8_E4M3", 8, std::nullopt},
    {"F8_E5M2", 8, std::nullopt}, {"F8_E8M0", 8, std::nullopt}, {"F6_E2M3", 6, std::nullopt},
    {"F6_E3M2", 6, std::nullopt}, {"F4", 4, std::nullopt},
};

// Takes the tensors out of the header as the parser finds them. Only names and places are kept of
// all of them, which have less room there than in the text.
class TensorHeader final : public nlohmann::json_sax<nlohmann::json> {
  public:
    struct Tensor {
        std::string name;
        uint64_t begin = 0, end = 0;
    };
    std::vector<Tensor> tensors;
    // Of the tensor that is wanted, or of the first one.
    const TensorDType* dtype = nullptr;
    std::array<uint64_t, max_row_dimensions> shape{};
    size_t ndim = 0;
    uint64_t begin = 0;
    bool is_found = false;

    explicit TensorHeader(const std::string& wanted) : wanted_(wanted) {}

    bool null() override { refuse_value(); }
    bool boolean(bool /*value*/) override { refuse_value(); }
    bool number_integer(number_integer_t /*value*/) override { refuse_value(); }
    bool number_float(number_float_t /*value*/, const string_t& /*text*/) override {
        refuse_value();
    }
    bool binary(binary_t& /*value*/) override { refuse_value(); }

    bool number_unsigned(number_unsigned_t number) override {
        if (place_ == Place::shape) {
            if (ndim_ < shape_.size()) shape_[ndim_] = number;
            ++ndim_;
            if (__builtin_mul_overflow(elements_, number, &elements_)) refuse_size();
        } else if (place_ == Place::offsets && offset_count_ < offsets_.size()) {
            offsets_[offset_count_++] = number;
        } else {
            refuse_value();
        }
        return true;
    }

    bool string(string_t& text) override {
        if (place_ == Place::metadata) return true;
        if (place_ != Place::tensor || member_ != "dtype") refuse_value();
        const auto* const known = std::find_if(std::begin(tensor_dtypes), std::end(tensor_dtypes),
                                               [&](const auto& row) { return row.name == text; });
        if (known == std::end(tensor_dtypes))
            throw Error(SHF_E_UNSUPPORTED,
                        "safetensors: the tensor \"" + escape(name_) +
                            "\" has the unknown dtype \"" + escape(text) + "\"",
                        "take the field as bytes");
        dtype_ = known;
        return true;
    }

    bool start_object(size_t /*size*/) override {
        switch (place_) {
            case Place::before: place_ = Place::top; return true;
            case Place::top:
                place_ = name_ == "__metadata__" ? Place::metadata : Place::tensor;
                if (place_ == Place::metadata && std::exchange(has_metadata_, true))
                    refuse_tensors("a second __metadata__");
                dtype_ = nullptr;
                has_dtype_ = has_shape_ = has_offsets_ = false;
                return true;
            default: refuse_value();
        }
    }
    bool end_object() override {
        if (place_ == Place::tensor) add_tensor();
        place_ = Place::top;
        return true;
    }
    bool start_array(size_t /*size*/) override {
        if (place_ != Place::tensor) refuse_value();
        if (member_ == "shape") {
            place_ = Place::shape;
            ndim_ = 0;
            elements_ = 1;
        } else if (member_ == "data_offsets") {
            place_ = Place::offsets;
            offset_count_ = 0;
        } else {
            refuse_value();
        }
        return true;
    }
    bool end_array() override {
        if (place_ == Place::offsets && offset_count_ != offsets_.size()) refuse_value();
        place_ = Place::tensor;
        return true;
    }
    bool key(string_t& name) override {
        if (place_ == Place::top) {
            name_ = std::move(name);
        } else if (place_ == Place::tensor) {
            bool* const has = name == "dtype"          ? &has_dtype_
                              : name == "shape"        ? &has_shape_
                              : name == "data_offsets" ? &has_offsets_
                                                       : nullptr;
            if (has == nullptr || std::exchange(*has, true))
                refuse_tensors("the tensor \"" + escape(name_) + "\" has " +
                               (has == nullptr ? "the unknown" : "a second") + " \"" +
                               escape(name) + "\"");
            member_ = std::move(name);
        }
        return true;
    }

    bool parse_error(size_t position, const std::string& /*token*/,
                     const nlohmann::detail::exception& /*error*/) override {
        refuse_tensors("its header is not JSON, at byte " +
                       std::to_string(tensors_length_size + position) + " of the field");
    }

    // All of `bytes` bytes behind the header are of one tensor each, as the package safetensors
    // demands.
    void check_places(uint64_t bytes) {
        std::sort(tensors.begin(), tensors.end(), [](const Tensor& a, const Tensor& b) {
            return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
        });
        uint64_t at = 0;
        for (const Tensor& tensor : tensors) {
            if (tensor.begin != at)
                refuse_tensors("the tensor \"" + escape(tensor.name) + "\" begins at byte " +
                               std::to_string(tensor.begin) + " of the elements, where byte " +
                               std::to_string(at) + " is next");
            at = tensor.end;
        }
        if (at != bytes)
            refuse_tensors("its tensors have " + plural(at, "byte") + ", and there are " +
                           std::to_string(bytes));
        std::sort(tensors.begin(), tensors.end(),
                  [](const Tensor& a, const Tensor& b) { return a.name < b.name; });
        const auto twice =
            std::adjacent_find(tensors.begin(), tensors.end(),
                               [](const Tensor& a, const Tensor& b) { return a.name == b.name; });
        if (twice != tensors.end())
            refuse_tensors("the tensor \"" + escape(twice->name) + "\" is there twice");
    }

  private:
    enum class Place : uint8_t { before, top, metadata, tensor, shape, offsets };

    [[noreturn]] void refuse_value() const {
        if (place_ == Place::before) refuse_tensors("its header is no JSON object");
        if (place_ == Place::metadata) refuse_tensors("a value of __metadata__ is no text");
        refuse_tensors("the tensor \"" + escape(name_) +
                       "\" has another value than a dtype, a shape "
                       "and two data_offsets");
    }
    [[noreturn]] void refuse_size() const {
        refuse_tensors("the tensor \"" + escape(name_) + "\" has a shape that no array has");
    }

    void add_tensor() {
        if (dtype_ == nullptr || !has_shape_ || !has_offsets_)
            refuse_tensors("the tensor \"" + escape(name_) +
                           "\" lacks dtype, shape or data_offsets");
        const auto [from, to] = std::pair(offsets_[0], offsets_[1]);
        uint64_t bits = 0;
        if (__builtin_mul_overflow(elements_, dtype_->bits, &bits)) refuse_size();
        if (from > to || bits % 8 != 0 || to - from != bits / 8)
            refuse_tensors("the tensor \"" + escape(name_) + "\" has the data_offsets " +
                           std::to_string(from) + " and " + std::to_string(to) +
                           ", and its shape " + plural(bits / 8, "byte"));
        if (name_ == wanted_ || (wanted_.empty() && tensors.empty())) {
            dtype = dtype_;
            shape = shape_;
            ndim = ndim_;
            begin = from;
            is_found = true;
        }
        tensors.push_back({std::move(name_), from, to});
    }

    const std::string& wanted_;
    Place place_ = Place::before;
    bool has_metadata_ = false;
    std::string name_, member_;
    // Of the tensor that is read.
    const TensorDType* dtype_ = nullptr;
    bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
    std::array<uint64_t, max_row_dimensions> shape_{};
    size_t ndim_ = 0;
    uint64_t elements_ = 1;
    std::array<uint64_t, 2> offsets_{};
    size_t offset_count_ = 0;
};

// The names of tensors for a message.
std::string tensor_names(const std::vector<TensorHeader::Tensor>& tensors) {
    constexpr size_t most = 8;
    std::string names;
    for (size_t i = 0; i < std::min(tensors.size(), most); ++i)
        names += (i == 0 ? "" : ", ") + escape(tensors[i].name);
    if (tensors.size() > most) names += " and " + std::to_string(tensors.size() - most) + " more";
    return names;
}

class SafetensorsDecoder final : public StoredArrayDecoder {
  public:
    SafetensorsDecoder(std::string tensor, uint64_t max_decoded)
        : StoredArrayDecoder(max_decoded), tensor_(std::move(tensor)) {}

  protected:
    [[nodiscard]] StoredArray find(std::span<const uint8_t> field) const override {
        if (field.size() < tensors_length_size)
            refuse_tensors("a field of " + plural(field.size(), "byte"));
        const uint64_t length = le64(field.data());
        const size_t left = field.size() - tensors_length_size;
        if (length > longest_tensor_header)
            refuse_tensors("a header of " + plural(length, "byte") + ", where the format allows " +
                           std::to_string(longest_tensor_header));
        if (length > left)
            refuse_tensors("a header of " + plural(length, "byte") + ", and there are " +
                           std::to_string(left));
        const auto size = static_cast<size_t>(length);
        const std::string_view text(
            reinterpret_cast<const char*>(field.data()) + tensors_length_size, size);
        // The parser takes a zero for the end.
        if (!text.starts_with('{') || text.find('\0') != text.npos)
            refuse_tensors("its header is no JSON object");
        TensorHeader header(tensor_);
        nlohmann::json::sax_parse(text, &header);
        header.check_places(left - size);
        if (!header.is_found || (tensor_.empty() && header.tensors.size() > 1)) refuse_name(header);
        StoredArray array{.type = type_of(header)};
        array.begin = tensors_length_size + size + static_cast<size_t>(header.begin);
        return array;
    }

  private:
    [[noreturn]] void refuse_name(const TensorHeader& header) const {
        const std::vector<TensorHeader::Tensor>& tensors = header.tensors;
        throw Error(
            SHF_E_FORMAT,
            tensor_.empty() ? "safetensors: the field has " + plural(tensors.size(), "tensor")
                            : "safetensors: the field has no tensor \"" + escape(tensor_) + "\"",
            tensors.empty() ? tensors_help
                            : "safetensors/tensor=NAME names one of " + tensor_names(tensors));
    }

    static ArrayType type_of(const TensorHeader& header) {
        if (!header.dtype->dtype)
            throw Error(SHF_E_UNSUPPORTED,
                        "safetensors: a tensor of " + std::string(header.dtype->name) +
                            ", which no column has",
                        "take the field as bytes");
        if (header.ndim > max_row_dimensions)
            throw Error(
                SHF_E_LIMIT,
                "an array of more than " + std::to_string(max_row_dimensions) + " dimensions",
                "take the field as bytes");
        ArrayType type{.dtype = *header.dtype->dtype, .ndim = static_cast<int32_t>(header.ndim)};
        for (size_t i = 0; i < header.ndim; ++i) {
            if (header.shape[i] > INT64_MAX)
                throw Error(SHF_E_LIMIT, "an array with a dimension of 2^63 and more",
                            "take the field as bytes");
            type.shape[i] = static_cast<int64_t>(header.shape[i]);
        }
        return type;
    }

    const std::string tensor_;
};

}  // namespace

std::unique_ptr<Decoder> safetensors_decoder(std::string tensor, uint64_t max_decoded) {
    return std::make_unique<SafetensorsDecoder>(std::move(tensor), max_decoded);
}

}  // namespace shf
