#include "batch/rows.h"

#include "core/error.h"

#include <algorithm>
#include <cstring>

namespace shf {

namespace {

// The shape that row `row` had before it was padded.
ArrayType true_shape(const BatchColumn& column, uint64_t row) {
    ArrayType type = column.row;
    if (const int64_t* shapes = column.shapes())
        std::copy_n(shapes + row * static_cast<uint64_t>(type.ndim), type.ndim, type.shape.begin());
    return type;
}

struct RowBytes {
    const uint8_t* data;
    size_t size;
};

RowBytes row_bytes(const BatchColumn& column, uint64_t row) {
    if (!column.ragged) {
        const uint64_t size = column.row.bytes();
        return {column.values->data + row * size, static_cast<size_t>(size)};
    }
    const size_t size = traits_of(column.dtype).size;
    const auto begin = static_cast<size_t>(column.offsets()[row]);
    const auto end = static_cast<size_t>(column.offsets()[row + 1]);
    return {column.values->data + begin * size, (end - begin) * size};
}

// Copies the part of the shape `part` between two arrays of larger shapes, from corner to corner.
void copy_part(const uint8_t* in, const ArrayType& from, uint8_t* out, const ArrayType& to,
               const ArrayType& part) {
    const auto ndim = static_cast<size_t>(part.ndim);
    const size_t size = traits_of(part.dtype).size;
    if (part.elements() == 0) return;
    if (ndim == 0) return void(std::memcpy(out, in, size));
    std::array<size_t, max_row_dimensions> index{}, in_step{}, out_step{};
    size_t in_size = size, out_size = size;
    for (size_t d = ndim; d-- > 0;) {
        in_step[d] = in_size;
        out_step[d] = out_size;
        in_size *= static_cast<size_t>(from.shape[d]);
        out_size *= static_cast<size_t>(to.shape[d]);
    }
    const size_t run = size * static_cast<size_t>(part.shape[ndim - 1]);
    for (;;) {
        std::memcpy(out, in, run);
        size_t d = ndim - 1;
        for (;;) {
            if (d == 0) return;
            --d;
            in += in_step[d];
            out += out_step[d];
            if (++index[d] < static_cast<size_t>(part.shape[d])) break;
            in -= in_step[d] * index[d];
            out -= out_step[d] * index[d];
            index[d] = 0;
        }
    }
}

class Gathering {
  public:
    Gathering(std::span<const RowOfBatch> rows, const std::function<StorageRef(uint64_t)>& allocate)
        : rows_(rows), allocate_(allocate) {}

    BatchColumn gather(size_t number) {
        number_ = number;
        const BatchColumn& first = column(rows_[0]);
        BatchColumn out;
        out.name = first.name;
        out.kind = first.kind;
        out.dtype = first.dtype;
        out.ragged = first.ragged;
        out.bounded = first.bounded;
        out.row = first.row;
        for (const RowOfBatch& row : rows_) {
            const BatchColumn& one = column(row);
            const bool padded = !first.ragged && first.shape_memory;
            const bool fits = one.dtype == first.dtype && one.row.ndim == first.row.ndim &&
                              (first.ragged || padded || one.row == first.row);
            if (!fits)
                throw Error(SHF_E_FORMAT,
                            "column " + escape(first.name) + ": an array " + one.row.text() +
                                " in a batch that begins with " + first.row.text(),
                            "ragged=pad and ragged=offsets take rows of unequal shape");
        }
        copy_shapes(out);
        if (out.ragged)
            copy_ragged(out);
        else
            copy_even(out);
        return out;
    }

  private:
    [[nodiscard]] const BatchColumn& column(const RowOfBatch& row) const {
        return row.batch->columns[number_];
    }

    void copy_shapes(BatchColumn& out) {
        if (!column(rows_[0]).shape_memory) return;
        const auto ndim = static_cast<size_t>(out.row.ndim);
        out.shape_memory = allocate_(rows_.size() * ndim * sizeof(int64_t));
        auto* shapes = reinterpret_cast<int64_t*>(out.shape_memory->data);
        if (!out.bounded) out.row.shape.fill(0);
        for (const RowOfBatch& row : rows_) {
            const ArrayType type = true_shape(column(row), row.row);
            for (size_t d = 0; d < ndim; ++d) {
                *shapes++ = type.shape[d];
                if (!out.ragged) out.row.shape[d] = std::max(out.row.shape[d], type.shape[d]);
            }
        }
    }

    void copy_even(BatchColumn& out) {
        const uint64_t size = out.row.bytes();
        if (__builtin_mul_overflow(rows_.size(), size, &out.bytes)) out.bytes = UINT64_MAX;
        out.values = allocate_(std::max<uint64_t>(out.bytes, 1));
        uint8_t* to = out.values->data;
        if (out.shape_memory) std::memset(to, 0, static_cast<size_t>(out.bytes));
        for (const RowOfBatch& row : rows_) {
            const BatchColumn& from = column(row);
            const uint8_t* data = row_bytes(from, row.row).data;
            if (from.row == out.row) {
                if (size > 0) std::memcpy(to, data, static_cast<size_t>(size));
            } else {
                copy_part(data, from.row, to, out.row, true_shape(from, row.row));
            }
            to += size;
        }
    }

    void copy_ragged(BatchColumn& out) {
        out.offset_memory = allocate_((rows_.size() + 1) * sizeof(int64_t));
        auto* offsets = reinterpret_cast<int64_t*>(out.offset_memory->data);
        *offsets = 0;
        for (const RowOfBatch& row : rows_) out.bytes += row_bytes(column(row), row.row).size;
        out.values = allocate_(std::max<uint64_t>(out.bytes, 1));
        uint8_t* to = out.values->data;
        for (const RowOfBatch& row : rows_) {
            const RowBytes bytes = row_bytes(column(row), row.row);
            if (bytes.size > 0) std::memcpy(to, bytes.data, bytes.size);
            to += bytes.size;
            const size_t size = traits_of(out.dtype).size;
            offsets[1] = *offsets + static_cast<int64_t>(bytes.size / size);
            ++offsets;
        }
    }

    const std::span<const RowOfBatch> rows_;
    const std::function<StorageRef(uint64_t)>& allocate_;
    size_t number_ = 0;
};

}  // namespace

void copy_padded(const uint8_t* in, const ArrayType& type, uint8_t* out, const ArrayType& larger) {
    copy_part(in, type, out, larger, type);
}

BatchColumn gather_column(std::span<const RowOfBatch> rows, size_t column,
                          const std::function<StorageRef(uint64_t)>& allocate) {
    return Gathering(rows, allocate).gather(column);
}

BatchRef gather_rows(std::span<const RowOfBatch> rows,
                     const std::function<StorageRef(uint64_t)>& allocate) {
    BatchRef batch(new Batch);
    batch->rows = rows.size();
    Gathering gathering(rows, allocate);
    for (size_t c = 0; c < rows[0].batch->columns.size(); ++c)
        batch->columns.push_back(gathering.gather(c));
    return batch;
}

}  // namespace shf
