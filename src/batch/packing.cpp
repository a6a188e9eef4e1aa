#include "batch/packing.h"

#include "batch/rows.h"
#include "core/error.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace shf {

namespace {

class Packing {
  public:
    Packing(std::span<const DocumentPart> parts, uint64_t width,
            const std::function<StorageRef(uint64_t)>& allocate)
        : parts_(parts), width_(width), allocate_(allocate) {
        for (const DocumentPart& part : parts) elements_ += part.count;
        rows_ = elements_ / width + (elements_ % width > 0 ? 1 : 0);
    }

    [[nodiscard]] uint64_t rows() const { return rows_; }

    BatchColumn packed(size_t number) const {
        const BatchColumn& first = parts_[0].batch->columns[number];
        BatchColumn column = of_rows(first.name, first.kind, first.dtype);
        const size_t size = traits_of(first.dtype).size;
        uint8_t* to = column.values->data;
        for (const DocumentPart& part : parts_) {
            if (!part.batch) {
                std::memset(to, 0, static_cast<size_t>(part.count * size));
                to += part.count * size;
                continue;
            }
            const BatchColumn& from = part.batch->columns[number];
            if (from.dtype != first.dtype)
                throw Error(SHF_E_FORMAT,
                            "column " + escape(first.name) + ": an array " + from.row.text() +
                                " in a batch that begins with " + first.row.text(),
                            "rows of one column have one dtype");
            const uint64_t begin = static_cast<uint64_t>(from.offsets()[part.row]) + part.begin;
            std::memcpy(to, from.values->data + begin * size,
                        static_cast<size_t>(part.count * size));
            to += part.count * size;
        }
        std::memset(to, 0, static_cast<size_t>((rows_ * width_ - elements_) * size));
        return column;
    }

    [[nodiscard]] BatchColumn documents() const {
        BatchColumn column = of_numbers(document_column);
        int64_t* to = numbers_of(column);
        uint64_t filled = 0;  // of the row
        int64_t document = 0;
        for (const DocumentPart& part : parts_) {
            for (uint64_t left = part.count; left > 0;) {
                const uint64_t count = std::min(left, width_ - filled);
                to = std::fill_n(to, count, part.batch ? document++ : -1);
                left -= count;
                filled += count;
                if (filled < width_) continue;
                filled = 0;
                document = 0;
            }
        }
        std::fill_n(to, rows_ * width_ - elements_, -1);
        return column;
    }

    [[nodiscard]] BatchColumn positions() const {
        BatchColumn column = of_numbers(position_column);
        int64_t* to = numbers_of(column);
        for (const DocumentPart& part : parts_) {
            if (!part.batch)
                to = std::fill_n(to, part.count, -1);
            else
                for (uint64_t i = 0; i < part.count; ++i)
                    *to++ = static_cast<int64_t>(part.begin + i);
        }
        std::fill_n(to, rows_ * width_ - elements_, -1);
        return column;
    }

    // The samples that the rows begin with.
    [[nodiscard]] std::vector<RowOfBatch> first_samples() const {
        std::vector<RowOfBatch> first;
        uint64_t end = 0;  // of the elements of a part
        for (const DocumentPart& part : parts_)
            for (end += part.count; first.size() * width_ < end;)
                first.push_back({part.batch, part.row});
        return first;
    }

  private:
    [[nodiscard]] BatchColumn of_rows(std::string_view name, ColumnSpec::Kind kind,
                                      DType dtype) const {
        BatchColumn column;
        column.name = name;
        column.kind = kind;
        column.dtype = column.row.dtype = dtype;
        column.row.ndim = 1;
        column.row.shape[0] = static_cast<int64_t>(width_);
        if (__builtin_mul_overflow(rows_, column.row.bytes(), &column.bytes))
            column.bytes = UINT64_MAX;
        column.values = allocate_(column.bytes);
        return column;
    }
    [[nodiscard]] BatchColumn of_numbers(std::string_view name) const {
        return of_rows(name, ColumnSpec::Kind::integer, DType::i64);
    }
    static int64_t* numbers_of(const BatchColumn& column) {
        return reinterpret_cast<int64_t*>(column.values->data);
    }

    const std::span<const DocumentPart> parts_;
    const uint64_t width_;
    const std::function<StorageRef(uint64_t)>& allocate_;
    uint64_t elements_ = 0;
    uint64_t rows_ = 0;
};

}  // namespace

std::vector<std::vector<DocumentPart>> fit_documents(std::span<const DocumentPart> documents,
                                                     uint64_t width) {
    struct Row {
        size_t last = 0;  // number of a document
        std::vector<DocumentPart> parts;
    };
    std::vector<Row> rows;
    std::vector<std::pair<uint64_t, size_t>> rests;  // elements, and of which document
    for (size_t i = 0; i < documents.size(); ++i) {
        DocumentPart part = documents[i];
        uint64_t left = part.count;
        for (part.count = width; left >= width; left -= width) {
            rows.push_back({i, {part}});
            part.begin += width;
        }
        if (left > 0) rests.emplace_back(left, i);
    }
    std::stable_sort(rests.begin(), rests.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<std::vector<size_t>> bins;          // numbers of documents
    std::set<std::pair<uint64_t, size_t>> by_room;  // number of a bin
    for (const auto& [count, document] : rests) {
        const auto place = by_room.lower_bound({count, 0});
        size_t bin = bins.size();
        uint64_t room = width;
        if (place == by_room.end()) {
            bins.emplace_back();
        } else {
            std::tie(room, bin) = *place;
            by_room.erase(place);
        }
        bins[bin].push_back(document);
        if (room > count) by_room.emplace(room - count, bin);
    }
    for (std::vector<size_t>& bin : bins) {
        std::sort(bin.begin(), bin.end());
        Row row{bin.back(), {}};
        for (const size_t number : bin) {
            DocumentPart part = documents[number];
            const uint64_t rest = part.count % width;
            part.begin += part.count - rest;
            part.count = rest;
            row.parts.push_back(part);
        }
        rows.push_back(std::move(row));
    }
    // Of a document the whole rows come first, in their order.
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row& a, const Row& b) { return a.last < b.last; });
    std::vector<std::vector<DocumentPart>> parts;
    parts.reserve(rows.size());
    for (Row& row : rows) parts.push_back(std::move(row.parts));
    return parts;
}

BatchRef pack_documents(std::span<const DocumentPart> parts, uint64_t width,
                        const std::function<StorageRef(uint64_t)>& allocate) {
    const Packing packing(parts, width, allocate);
    BatchRef batch(new Batch);
    batch->rows = packing.rows();
    const size_t columns = parts[0].batch->columns.size() - 2;
    for (size_t c = 0; c < columns; ++c) batch->columns.push_back(packing.packed(c));
    batch->columns.push_back(packing.documents());
    batch->columns.push_back(packing.positions());
    const std::vector<RowOfBatch> samples = packing.first_samples();
    for (const size_t c : {columns, columns + 1})
        batch->columns.push_back(gather_column(samples, c, allocate));
    return batch;
}

}  // namespace shf
