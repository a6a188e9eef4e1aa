#include "decode/ten.h"

#include "core/error.h"
#include "core/little_endian.h"
#include "decode/stored_array.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace shf {

namespace {

constexpr std::string_view ten_magic = "~TenBin~";
constexpr size_t ten_head = 16;       // the magic and a length
constexpr size_t ten_alignment = 64;  // of payloads
constexpr const char* ten_help =
    "write the field again, with tenbin of webdataset or tensorcom, or give it another kind in "
    "decode";

[[noreturn]] void refuse_ten(size_t at, const std::string& cause) {
    throw Error(SHF_E_FORMAT,
                "not TenBin: " + cause + " at byte " + std::to_string(at) + " of the field",
                ten_help);
}

constexpr std::pair<std::string_view, DType> ten_dtypes[] = {
    {"f2", DType::f16}, {"f4", DType::f32}, {"f8", DType::f64}, {"i1", DType::i8},
    {"i2", DType::i16}, {"i4", DType::i32}, {"i8", DType::i64}, {"u1", DType::u8},
    {"u2", DType::u16}, {"u4", DType::u32}, {"u8", DType::u64},
};

// The chunks of a field, from front to back.
class TenChunks {
  public:
    explicit TenChunks(std::span<const uint8_t> field) : field_(field) {}

    [[nodiscard]] bool at_end() const { return at_ == field_.size(); }
    [[nodiscard]] size_t at() const { return at_; }

    // The payload of the next chunk.
    std::span<const uint8_t> next() {
        const std::span<const uint8_t> rest = field_.subspan(at_);
        if (rest.size() < ten_head)
            refuse_ten(at_, "a chunk that ends after " + plural(rest.size(), "byte"));
        if (!std::equal(ten_magic.begin(), ten_magic.end(), rest.begin()))
            refuse_ten(at_, "a chunk does not begin with ~TenBin~");
        const uint64_t size = le64(rest.data() + ten_magic.size());
        const size_t left = rest.size() - ten_head;
        // The zeros behind it are part of a chunk: without them the file was cut.
        if (size > left || (left - size) < (ten_alignment - size % ten_alignment) % ten_alignment)
            refuse_ten(at_, "a chunk of " + plural(size, "byte") +
                                (size > left ? "," : ", filled up to a multiple of 64,") +
                                " of which " + std::to_string(left) + " are there,");
        const auto payload = static_cast<size_t>(size);
        at_ += ten_head + (payload + ten_alignment - 1) / ten_alignment * ten_alignment;
        return rest.subspan(ten_head, payload);
    }

  private:
    const std::span<const uint8_t> field_;
    size_t at_ = 0;
};

DType ten_dtype(std::span<const uint8_t> header) {
    std::string_view name(reinterpret_cast<const char*>(header.data()), 8);
    name = name.substr(0, std::min(name.find_last_not_of('\0') + 1, name.size()));
    for (const auto& [known, dtype] : ten_dtypes)
        if (known == name) return dtype;
    throw Error(SHF_E_UNSUPPORTED, "TenBin: unknown dtype \"" + escape(name) + "\"",
                "f2, f4, f8, i1, i2, i4, i8, u1, u2, u4 and u8 are known");
}

class TenDecoder final : public StoredArrayDecoder {
  public:
    TenDecoder(std::optional<uint64_t> part, uint64_t max_decoded)
        : StoredArrayDecoder(max_decoded), part_(part) {}

  protected:
    [[nodiscard]] StoredArray find(std::span<const uint8_t> field) const override {
        std::optional<StoredArray> found;
        uint64_t count = 0;
        for (TenChunks chunks(field); !chunks.at_end(); ++count) {
            const size_t at = chunks.at();
            const std::span<const uint8_t> header = chunks.next();
            if (chunks.at_end()) refuse_ten(chunks.at(), "the last array has no elements");
            const size_t data_at = chunks.at();
            const std::span<const uint8_t> data = chunks.next();
            const bool wanted = count == part_.value_or(0);
            const ArrayType type = read_header(header, at, data, data_at, wanted);
            if (wanted)
                found = {.type = type, .begin = static_cast<size_t>(data.data() - field.data())};
        }
        if (part_ ? found.has_value() : count == 1) return *found;
        throw Error(SHF_E_FORMAT,
                    "TenBin: the field has " + plural(count, "array") +
                        (part_ ? ", and no part " + std::to_string(*part_) : ""),
                    count == 0
                        ? ten_help
                        : "name one of them in decode: ten/part=0" +
                              (count == 1 ? "" : " to ten/part=" + std::to_string(count - 1)));
    }

  private:
    // Of an array that is not wanted, the type says no more than its dtype.
    static ArrayType read_header(std::span<const uint8_t> header, size_t at,
                                 std::span<const uint8_t> data, size_t data_at, bool wanted) {
        constexpr size_t word = 8, before = 3 * word;  // dtype, name, number of dimensions
        constexpr uint64_t most = 9;
        if (header.size() < before) refuse_ten(at, "a header of " + plural(header.size(), "byte"));
        const uint64_t ndim = le64(header.data() + 2 * word);
        if (ndim > most || header.size() != before + word * ndim)
            refuse_ten(at, "a header of " + plural(header.size(), "byte") + " that says " +
                               plural(ndim, "dimension"));
        ArrayType type{.dtype = ten_dtype(header)};
        if (wanted && ndim > max_row_dimensions)
            throw Error(
                SHF_E_LIMIT,
                "an array of more than " + std::to_string(max_row_dimensions) + " dimensions",
                "take the field as bytes");
        auto bytes = static_cast<int64_t>(traits_of(type.dtype).size);
        for (size_t i = 0; i < ndim; ++i) {
            const auto length = static_cast<int64_t>(le64(header.data() + before + word * i));
            if (length < 0 || __builtin_mul_overflow(bytes, length, &bytes))
                refuse_ten(at, "a header with lengths that no array has");
            if (wanted) type.shape[static_cast<size_t>(type.ndim++)] = length;
        }
        if (data.size() != static_cast<uint64_t>(bytes))
            refuse_ten(data_at, "there are " + plural(data.size(), "byte") + " of an array of " +
                                    std::to_string(bytes));
        return type;
    }

    const std::optional<uint64_t> part_;
};

}  // namespace

std::unique_ptr<Decoder> ten_decoder(std::optional<uint64_t> part, uint64_t max_decoded) {
    return std::make_unique<TenDecoder>(part, max_decoded);
}

}  // namespace shf
