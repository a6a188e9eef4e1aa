#include "batch/dlpack.h"

#include <array>
#include <memory>

namespace shf {

namespace {

// The structs of dlpack.h, which are frozen within a major version.
struct DLDevice {
    int32_t device_type;
    int32_t device_id;
};
struct DLDataType {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
};
struct DLTensor {
    void* data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t* shape;
    int64_t* strides;
    uint64_t byte_offset;
};
struct DLManagedTensor {
    DLTensor tensor;
    void* context;
    void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
    uint32_t major, minor;
    void* context;
    void (*deleter)(DLManagedTensorVersioned*);
    uint64_t flags;
    DLTensor tensor;
};
constexpr int32_t cpu = 1;
constexpr uint64_t read_only = 1;

// The struct that is handed over, and what it points to.
template <typename Managed>
struct Handed {
    Managed managed{};
    BatchRef batch;
    std::array<int64_t, 8> shape{}, strides{};

    static void free(Managed* managed) { delete static_cast<Handed*>(managed->context); }
};

uint8_t code_of(DType dtype, bool has_bool) {
    switch (traits_of(dtype).kind) {
        case 'i': return 0;
        case 'u': return 1;
        case 'f': return 2;
        case 'B': return 4;
        case 'c': return 5;
        default: return has_bool ? 6 : 1;  // older consumers know no bool
    }
}

template <typename Managed>
Managed* hand_over(Batch& batch, size_t number, bool has_bool) {
    const BatchColumn& column = batch.columns[number];
    auto handed = std::make_unique<Handed<Managed>>();
    DLTensor& tensor = handed->managed.tensor;
    const DTypeTraits& traits = traits_of(column.dtype);
    if (column.ragged) {
        tensor.ndim = 1;
        handed->shape[0] = static_cast<int64_t>(column.bytes / traits.size);
    } else {
        tensor.ndim = column.row.ndim + 1;
        handed->shape[0] = static_cast<int64_t>(batch.rows);
        for (size_t d = 0; d < column.row.dimensions().size(); ++d)
            handed->shape[d + 1] = column.row.shape[d];
    }
    int64_t stride = 1;
    for (auto d = static_cast<size_t>(tensor.ndim); d-- > 0;) {
        handed->strides[d] = stride;
        stride *= handed->shape[d];
    }
    tensor.data = column.values ? column.values->data : nullptr;
    tensor.device = {cpu, 0};
    tensor.dtype = {code_of(column.dtype, has_bool), static_cast<uint8_t>(8 * traits.size), 1};
    tensor.shape = handed->shape.data();
    tensor.strides = handed->strides.data();
    batch.ref();
    handed->batch.reset(&batch);
    handed->managed.context = handed.get();
    handed->managed.deleter = Handed<Managed>::free;
    return &handed.release()->managed;
}

}  // namespace

void* to_dlpack(Batch& batch, size_t column, bool versioned) {
    if (!versioned) return hand_over<DLManagedTensor>(batch, column, false);
    DLManagedTensorVersioned* const managed =
        hand_over<DLManagedTensorVersioned>(batch, column, true);
    managed->major = 1;
    managed->minor = 0;
    // Whoever has the batch may write to its numbers; keys and URLs are looked up in it.
    managed->flags = batch.columns[column].name.starts_with("__") ? read_only : 0;
    return managed;
}

}  // namespace shf
