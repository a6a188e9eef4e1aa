// How samples become rows: the columns of the option "decode" with their decoders, and what is done
// about fields that are missing or have another shape.
#pragma once

#include "batch/batch.h"
#include "core/options.h"
#include "decode/decoder.h"
#include "decode/field_unpacker.h"
#include "sample/block.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shf {

struct ColumnPlan {
    ColumnSpec spec;
    std::unique_ptr<Decoder> decoder;  // NULL for bytes of any length
    // Of an array: what the first row of all was. With ragged=error every row is that, else it has
    // this dtype and number of dimensions. So what goes into a batch does not depend on where the
    // batch begins.
    std::optional<ArrayType> type;
    uint64_t usual_bytes = 0;  // of the latest batch, as a first guess for the next one

    // With the option pack: texts, of which the tokenizer makes arrays.
    [[nodiscard]] bool is_text() const { return spec.kind == ColumnSpec::Kind::text; }
    // Rows of any shape, whose places are known when all of them are.
    [[nodiscard]] bool any_shape() const { return decoder && spec.kind >= ColumnSpec::Kind::npy; }
    // Its elements count for batch_elements, and its first dimension for bucket.
    [[nodiscard]] bool has_length() const {
        return any_shape() && spec.kind != ColumnSpec::Kind::image &&
               spec.kind != ColumnSpec::Kind::video && spec.kind != ColumnSpec::Kind::boxes;
    }
};

// The fields that the option "decode" makes arrays of which are, as a rule, no more than copies of
// their bytes; and nothing else.
std::function<bool(std::string_view field)> fields_to_copy(const Options& options);

// One thread at a time.
class BatchPlan {
  public:
    // Throws Error(USAGE) for a bad option "decode" or "bucket".
    explicit BatchPlan(const Options& options);

    // The fields of samples with one list of names.
    struct Fields {
        std::shared_ptr<const Schema> schema;
        // Of each column's field. -1: the sample has none; `recorded`, `paired`: the column is of
        // none.
        std::vector<int32_t> number;
        static constexpr int32_t recorded = -2, paired = -3;
        // With what each column's field is compressed, and to be unpacked before all else.
        std::vector<FieldCodec> codec;
        // The number of the field with the image in which boxes lie.
        [[nodiscard]] std::optional<uint64_t> image_of(const ColumnPlan& plan) const {
            if (plan.spec.kind != ColumnSpec::Kind::boxes) return std::nullopt;
            return static_cast<uint64_t>(number[plan.spec.image_column]);
        }
        [[nodiscard]] FieldCodec image_codec_of(const ColumnPlan& plan) const {
            return image_of(plan) ? codec[plan.spec.image_column] : FieldCodec::none;
        }
        int32_t fault = -1;  // the number of the field that says why there are no others
        bool complete = true;
        std::string unexpected;  // with decode=auto: a field that the first sample did not have
    };
    // The first call fixes the columns of decode=auto.
    const Fields& fields_of(const std::shared_ptr<const Schema>& schema);

    // Valid once fields_of() was called; does not change after that.
    [[nodiscard]] std::span<ColumnPlan> columns() { return columns_; }
    [[nodiscard]] std::span<const ColumnPlan> columns() const { return columns_; }
    [[nodiscard]] const Options& options() const { return options_; }
    // The upper bounds of the buckets, ascending; none without the option bucket.
    [[nodiscard]] std::span<const uint64_t> bounds() const { return bounds_; }
    // What the first rows decided of the columns, as text, for a plan of the same option "decode"
    // that resumes here; nothing before the first sample.
    [[nodiscard]] std::string saved_columns() const;
    // Before the first sample. Throws Error(FORMAT) for a text that saved_columns() did not give.
    void restore_columns(std::string_view text);
    // Whether the columns are those of the first sample.
    [[nodiscard]] bool automatic() const { return automatic_; }
    // The key of a sample's random choices.
    [[nodiscard]] uint64_t random_of(const Block& block, uint32_t sample) const;

  private:
    void add(ColumnSpec spec);
    void fix_columns(std::span<const std::string> names);
    void check_columns() const;
    void check_lengths() const;
    void fill(Fields& fields, const std::shared_ptr<const Schema>& schema);

    const Options options_;
    const std::vector<uint64_t> bounds_;
    bool automatic_ = false;   // decode=auto ...
    bool undecided_ = false;   // ... and the first sample is still to come
    bool any_choice_ = false;  // a column may have choices at random
    std::vector<ColumnPlan> columns_;
    std::unordered_map<const Schema*, Fields> known_;
    const Fields* last_ = nullptr;
};

}  // namespace shf
