// Puts samples into the rows of one batch. Bytes and small things are written at once; what takes
// time is handed out as work that any thread may do, and that writes straight into the column.
#pragma once

#include "batch/batch_plan.h"
#include "batch/measure_sample.h"
#include "batch/packing.h"
#include "batch/tokens.h"
#include "core/error.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shf {

// Memory of at least so many bytes. May throw.
using Allocate = std::function<StorageRef(uint64_t)>;

// One field to decode. The block must stay until it is done.
struct DecodeWork {
    const Block* block = nullptr;
    uint32_t sample = 0;
    uint32_t column = 0;
    uint64_t row = 0;
    uint64_t field = 0;                  // number in the sample
    std::optional<uint64_t> image = {};  // that of the image in which boxes lie
    FieldCodec codec = FieldCodec::none, image_codec = FieldCodec::none;  // of these two
    uint64_t random = 0;
    ArrayType type;
    bool cheap = false;                 // not worth another thread, see Measured
    uint8_t* out = nullptr;             // the row
    const ArrayType* padded = nullptr;  // of the row, when it is larger than `type`
};

// The option "memory" has no room for the batch. No fault of a sample: none is skipped for it.
struct BatchTooLarge : Error {
    using Error::Error;
};

class BatchBuilder {
  public:
    // At most `capacity` rows. With a bound, arrays that have a length are padded to it, and all
    // others are of one shape. The plan must outlive the builder.
    BatchBuilder(BatchPlan& plan, uint64_t capacity, Allocate allocate, uint64_t bound = 0);

    // Adds sample `sample` of `block` as the next row. False: it is skipped, for lack of a
    // field. Throws Error, with shard, member and offset; nothing is added then.
    bool add(const Block& block, uint32_t sample);
    // Likewise of a sample that was measured, which has_room().
    void add(const Block& block, uint32_t sample, const MeasuredSample& measured);
    // Without a bound: whether a row more is within batch_elements. A first row always is.
    [[nodiscard]] bool has_room(const MeasuredSample& measured) const;
    [[nodiscard]] uint64_t rows() const { return rows_; }
    [[nodiscard]] bool full() const {
        return rows_ == capacity_ || (packs() && elements_ >= elements_of_batch(plan_.options()));
    }
    // What it holds, in bytes.
    [[nodiscard]] uint64_t bytes() const { return bytes_; }
    // Some work must wait for close(): keep the blocks until it is done.
    [[nodiscard]] bool keeps_blocks() const { return waits_; }

    // The work that the latest rows brought. Its blocks must stay until it is done.
    std::vector<DecodeWork> take_work() { return std::exchange(work_, {}); }
    // There will be no more rows. Returns the work that had to wait for that.
    std::vector<DecodeWork> close();
    // Does it. Any thread; throws Error, with shard, member and offset.
    void decode(const DecodeWork& work, DecodeScratch& scratch) const;
    // After close(), of a column of texts: those of all rows, with their keys and URLs.
    [[nodiscard]] std::vector<shf_text> texts(size_t column) const;
    // Puts the tokens of all rows in their place.
    void put_tokens(size_t column, Tokens tokens);
    // After close(), of a column of ragged arrays, as tokens are: elements of a row.
    [[nodiscard]] uint64_t elements_of_row(size_t column, uint64_t row) const;
    // When all work is done, or failed for rows that nobody takes.
    BatchRef finish();

  private:
    // Memory that grows at its end.
    struct Growing {
        StorageRef memory;
        uint64_t used = 0;
    };
    // What is here of a field, and of the image in which it lies, as they are decoded.
    struct Unpacked {
        std::span<const uint8_t> field, image = {};
    };
    struct Building {
        Growing values, offsets, shapes;
        std::vector<uint64_t> empty_rows;  // even, without a value
        ArrayType padded;                  // of every row, with ragged=pad or a bound
        bool even = false;
        bool at_once = false;   // ragged arrays so small that they are written as they are added
        bool waits = false;     // for close()
        bool bounded = false;   // padded to the bound
        bool tokens = false;    // in place of texts
        ArrayType largest;      // of the rows so far, in each dimension, where that counts
        uint64_t elements = 0;  // of the rows so far, likewise
    };

    [[nodiscard]] bool packs() const { return plan_.options().pack > 0; }
    void set_up_columns();
    void lower_capacity(const MeasuredSample& measured);
    void begin_bounded(size_t column, const ArrayType& type);
    [[nodiscard]] uint64_t packed_elements(const Block& block, uint32_t sample,
                                           const MeasuredSample& measured) const;
    void count_elements(const MeasuredSample& measured);
    [[nodiscard]] uint64_t elements_with(size_t column, const MeasuredSample& measured) const;
    void add_empty(size_t column);
    void reserve(Growing& growing, uint64_t more, uint64_t guess);
    void append(Growing& growing, const void* bytes, uint64_t size, uint64_t guess = 0);
    void append_bytes(Building& building, std::string_view bytes, uint64_t guess);
    void append_array(Building& building, DecodeWork todo, const Unpacked& bytes);
    void end_array(Building& building, const ArrayType& type);
    void forget_failed_row();
    void allocate_rows(size_t column, const ArrayType& type);
    void drop(Growing& growing);
    void write_row(const Block& block, uint32_t sample, const MeasuredSample& measured);
    void decode(const DecodeWork& work, const Unpacked& bytes, DecodeScratch& scratch) const;
    void place_waiting(size_t column, std::vector<DecodeWork>& work);
    [[nodiscard]] StorageRef allocate(uint64_t bytes);
    static BatchColumn column_of(Building& building, const ColumnPlan& plan, uint64_t rows);

    BatchPlan& plan_;
    uint64_t capacity_;  // with a bound and batch_elements the first row may lower it
    const uint64_t bound_;
    const Allocate allocate_;
    const bool marks_padding_;
    uint64_t rows_ = 0;
    uint64_t elements_ = 0;  // with the option pack: of each column
    uint64_t bytes_ = 0;
    bool waits_ = false;
    std::vector<Building> columns_;  // of the plan, then keys, URLs, and what is no padding
    MeasuredSample measured_;        // of the row that is added, if nobody else measured it
    std::vector<DecodeWork> work_, waiting_;
    DecodeScratch scratch_;  // for what is decoded at once
};

}  // namespace shf
