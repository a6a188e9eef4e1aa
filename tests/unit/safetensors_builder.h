// Files of safetensors, broken ones included.
#pragma once

#include "ten_builder.h"

#include <string>

namespace shf::test {

// `header` is JSON, `elements` what stands behind it.
inline std::string safetensors(const std::string& header, const std::string& elements = "") {
    return le64_text(header.size()) + header + elements;
}

// A member of the header: "NAME": {"dtype": ..., "shape": [...], "data_offsets": [from, to]}.
inline std::string tensor(const std::string& name, const std::string& dtype,
                          const std::string& shape, uint64_t from, uint64_t to) {
    return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + shape +
           "],\"data_offsets\":[" + std::to_string(from) + "," + std::to_string(to) + "]}";
}

}  // namespace shf::test
