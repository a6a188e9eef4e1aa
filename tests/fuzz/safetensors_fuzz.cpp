// Fuzz target of safetensors: what is decoded is what another reader of the header finds, twice
// gives the same bytes, and all bytes of the field are of a tensor.
#include "core/error.h"
#include "core/little_endian.h"
#include "decode/safetensors.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace {

using Json = nlohmann::json;
constexpr uint64_t max_decoded = 1 << 20;

struct Tensor {
    shf::ArrayType type;
    std::vector<uint8_t> bytes;
};

std::optional<Tensor> decoded(const std::vector<uint8_t>& field, const std::string& name,
                              uint8_t filling) {
    static shf::DecodeScratch scratch;
    const auto decoder = shf::safetensors_decoder(name, max_decoded);
    try {
        Tensor tensor{.type = decoder->measure(field, 0).type, .bytes = {}};
        if (tensor.type.bytes() > max_decoded) std::abort();
        tensor.bytes.assign(static_cast<size_t>(tensor.type.bytes()), filling);
        decoder->decode(field, 0, tensor.type, tensor.bytes, scratch);
        return tensor;
    } catch (const shf::Error& error) {
        if (error.code() != SHF_E_FORMAT && error.code() != SHF_E_UNSUPPORTED &&
            error.code() != SHF_E_LIMIT)
            std::abort();
        return std::nullopt;
    }
}

void compare(const Tensor& tensor, const Json& header, const uint8_t* elements, uint64_t size) {
    const auto from = header.at("data_offsets").at(0).get<uint64_t>();
    const auto to = header.at("data_offsets").at(1).get<uint64_t>();
    if (from > to || to > size || to - from != tensor.bytes.size()) std::abort();
    const std::vector<int64_t> shape = header.at("shape");
    if (!std::ranges::equal(shape, tensor.type.dimensions())) std::abort();
    const bool same = tensor.type.dtype == shf::DType::bool8 ||
                      std::equal(tensor.bytes.begin(), tensor.bytes.end(), elements + from);
    if (!same) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    // A copy of its own size, so that the sanitizer sees what is read behind the end.
    const std::vector<uint8_t> field(data, data + size);
    for (const std::string name : {"", "a"}) {
        const auto first = decoded(field, name, 0x55), second = decoded(field, name, 0xaa);
        if (first.has_value() != second.has_value()) std::abort();
        if (!first) continue;
        if (first->bytes != second->bytes || first->type != second->type) std::abort();
        const uint64_t length = shf::le64(field.data());
        const uint8_t* const text = field.data() + 8;
        Json header = Json::parse(text, text + length);
        header.erase("__metadata__");
        if (name.empty() && header.size() != 1) std::abort();
        uint64_t all = 0;
        for (const Json& one : header)
            all += one.at("data_offsets").at(1).get<uint64_t>() -
                   one.at("data_offsets").at(0).get<uint64_t>();
        if (all != field.size() - 8 - length) std::abort();
        compare(*first, name.empty() ? header.front() : header.at(name), text + length, all);
    }
    return 0;
}
