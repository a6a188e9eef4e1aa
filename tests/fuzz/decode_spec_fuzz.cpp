// Fuzz target of the option "decode": what is accepted has sound columns, and what is refused says
// so with USAGE and points into the text.
#include "batch/decode_spec.h"
#include "core/error.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

using Kind = shf::ColumnSpec::Kind;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    try {
        const shf::DecodeSpec spec = shf::DecodeSpec::parse(text);
        if (spec.automatic != spec.columns.empty()) std::abort();
        for (size_t i = 0; i < spec.columns.size(); ++i) {
            const shf::ColumnSpec& column = spec.columns[i];
            for (const std::string& field : column.fields)
                if (field.empty() || field.find_first_of("/,:;") != field.npos) std::abort();
            for (size_t j = 0; j < i; ++j)
                if (shf::row_field_of(spec.columns[j]) == shf::row_field_of(column)) std::abort();
            const std::string array = column.part ? std::to_string(*column.part) : column.member;
            const bool is_tensor = column.kind == Kind::ten || column.kind == Kind::safetensors;
            if (is_tensor && column.name() != column.fields[0] + (array.empty() ? "" : "." + array))
                std::abort();
            if (column.part && column.kind != Kind::ten) std::abort();
            const bool resized = column.image.resize != shf::ImageOptions::Resize::none;
            if (resized != (column.image.width > 0)) std::abort();
        }
    } catch (const shf::Error& error) {
        if (error.code() != SHF_E_USAGE || !std::strstr(error.what(), " >>> ")) std::abort();
    }
    return 0;
}
