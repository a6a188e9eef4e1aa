#include "batch/batch.h"

namespace shf {

const BatchColumn* Batch::find(std::string_view name) const {
    for (const BatchColumn& column : columns)
        if (column.name == name) return &column;
    return nullptr;
}

std::string_view Batch::text_of(const BatchColumn& column, uint64_t row) const {
    const int64_t* const offsets = column.offsets();
    const auto begin = static_cast<size_t>(offsets[row]);
    const auto end = static_cast<size_t>(offsets[row + 1]);
    return {reinterpret_cast<const char*>(column.values->data) + begin, end - begin};
}

uint64_t Batch::bytes() const {
    uint64_t sum = 0;
    for (const BatchColumn& column : columns) sum += column.bytes;
    return sum;
}

void Batch::hand_out() const {
    for (const BatchColumn& column : columns)
        for (const StorageRef* memory :
             {&column.values, &column.offset_memory, &column.shape_memory})
            if (*memory) memory->hand_out();
}

}  // namespace shf
