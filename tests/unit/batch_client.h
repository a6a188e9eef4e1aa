// A stream of batches as a program in C sees it.
#pragma once

#include "temp_shards.h"

#include <gtest/gtest.h>
#include <shardfeed.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shf::test {

struct BatchUnref {
    void operator()(shf_batch* batch) const { shf_batch_unref(batch); }
};
using BatchHandle = std::unique_ptr<shf_batch, BatchUnref>;

class BatchClient : public Client {
  public:
    using Client::Client;

    BatchHandle next_batch() {
        shf_batch* batch = nullptr;
        code = shf_stream_next_batch(stream, &batch, &error);
        return BatchHandle(batch);
    }
};

inline shf_array column(const BatchHandle& batch, std::string_view name) {
    size_t index = 0;
    shf_array array{};
    EXPECT_EQ(shf_batch_find(batch.get(), name.data(), name.size(), &index), SHF_OK) << name;
    EXPECT_EQ(shf_batch_column(batch.get(), index, nullptr, &array), SHF_OK);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(array.data) % 64, 0U) << name;
    return array;
}

// Row `row` of an even or ragged column, as numbers.
template <typename Number>
std::vector<Number> row_of(const shf_array& array, size_t row) {
    const auto* numbers = static_cast<const Number*>(array.data);
    if (array.offsets) return {numbers + array.offsets[row], numbers + array.offsets[row + 1]};
    size_t count = 1;
    for (int d = 1; d < array.ndim; ++d) count *= static_cast<size_t>(array.shape[d]);
    return {numbers + row * count, numbers + (row + 1) * count};
}

inline std::string text_of(const shf_array& array, size_t row) {
    const auto bytes = row_of<char>(array, row);
    return {bytes.begin(), bytes.end()};
}

inline std::vector<int64_t> range(int64_t from, int64_t to) {
    std::vector<int64_t> out;
    for (int64_t i = from; i < to; ++i) out.push_back(i);
    return out;
}

}  // namespace shf::test
