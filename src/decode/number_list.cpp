#include "decode/number_list.h"

#include "core/error.h"
#include "decode/json_scan.h"

#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace shf {

namespace {

// The place where the list begins that is called `member`, or that is the whole field without a
// name. All of the object was read then.
size_t find_list(JsonScan& scan, const std::string& member) {
    if (member.empty()) return scan.at();
    std::optional<size_t> found;
    scan.read_object(member, [&](bool is_wanted) {
        if (is_wanted) found = scan.at();
        scan.skip_value();
    });
    scan.expect_end();
    if (!found)
        throw Error(SHF_E_FORMAT, "the JSON object has no member \"" + escape(member) + "\"",
                    "name one that it has: list/NAME");
    return *found;
}

int64_t read_whole_number(JsonScan& scan) {
    constexpr const char* wanted = "a whole number of 64 bits";
    const bool negative = scan.next() == '-';
    const std::string_view text = scan.rest();
    const size_t first = negative ? 1 : 0;
    size_t end = first;
    uint64_t value = 0;
    bool fits = true;
    for (; end < text.size() && text[end] >= '0' && text[end] <= '9'; ++end)
        fits = fits && !__builtin_mul_overflow(value, uint64_t{10}, &value) &&
               !__builtin_add_overflow(value, static_cast<uint64_t>(text[end] - '0'), &value);
    const bool more =
        end < text.size() && std::string_view(".eE").find(text[end]) != std::string_view::npos;
    const bool zeros = end - first > 1 && text[first] == '0';
    constexpr auto most = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    if (end == first || more || zeros || !fits || value > most + (negative ? 1 : 0))
        scan.fail(wanted);
    scan.move_to(scan.at() + end);
    return static_cast<int64_t>(negative ? 0 - value : value);
}

class ListDecoder final : public Decoder {
  public:
    ListDecoder(std::string member, uint64_t max_decoded)
        : member_(std::move(member)), max_decoded_(max_decoded) {}

    [[nodiscard]] Measured measure(std::span<const uint8_t> field,
                                   uint64_t /*random*/) const override {
        ArrayType type{.dtype = DType::i64, .ndim = 1};
        int64_t count = 0;
        read(field, [&](int64_t) { ++count; });
        type.shape[0] = count;
        if (type.bytes() > max_decoded_)
            throw Error(SHF_E_LIMIT,
                        "a list of " + plural(type.elements(), "number") +
                            " is larger than max_decoded=" + std::to_string(max_decoded_),
                        "raise max_decoded");
        // Handing it to another thread takes as long as to read so few.
        constexpr int64_t few = 512;
        return {.type = type, .cheap = count <= few};
    }

    void decode(std::span<const uint8_t> field, uint64_t /*random*/, const ArrayType& /*type*/,
                std::span<uint8_t> out, DecodeScratch& /*scratch*/) const override {
        uint8_t* to = out.data();
        read(field, [&](int64_t number) {
            std::memcpy(to, &number, sizeof number);
            to += sizeof number;
        });
    }

  private:
    template <typename Take>
    void read(std::span<const uint8_t> field, Take take) const {
        JsonScan scan(field, "no list of whole numbers",
                      "correct the field, or give it another kind in decode");
        scan.move_to(find_list(scan, member_));
        scan.read_list([&] { take(read_whole_number(scan)); });
        if (member_.empty()) scan.expect_end();
    }

    const std::string member_;
    const uint64_t max_decoded_;
};

}  // namespace

std::unique_ptr<Decoder> list_decoder(std::string member, uint64_t max_decoded) {
    return std::make_unique<ListDecoder>(std::move(member), max_decoded);
}

}  // namespace shf
