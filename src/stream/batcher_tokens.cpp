// A Batcher with the option pack and a tokenizer: a thread makes tokens of the texts of a batch in
// the making once that is closed, while others are at other batches.
#include "batch/tokens.h"
#include "core/error.h"
#include "core/options.h"
#include "core/tokenizer_functions.h"
#include "stream/batcher.h"

#include <algorithm>
#include <utility>

namespace shf {

void Batcher::make_tokens(PendingBatch& making, std::vector<PendingBatch::Failure>& failures) {
    const Options& options = context_.options;
    const std::span<const ColumnPlan> plans = std::as_const(plan_).columns();
    const uint64_t most_bad = options.on_error == OnError::raise ? 0 : options.max_skips;
    std::vector<shf_text> texts;
    for (size_t c = 0; c < plans.size(); ++c) {
        if (!plans[c].is_text()) continue;
        texts = making.builder.texts(c);
        TokenSink sink(
            [this](uint64_t bytes) {
                return context_.pool->acquire(static_cast<size_t>(bytes), context_.cancel);
            },
            options.memory);
        Tokenizing tokenizing(*options.tokenizer, texts, plans[c].spec.name(), most_bad,
                              context_.cancel, sink);
        tokenizing.run();
        context_.cancel.check();  // of which a part of the texts has no tokens
        making.builder.put_tokens(c, sink.take());
        for (Tokenizing::Bad& bad : tokenizing.take_bad())
            failures.push_back({bad.text, static_cast<uint32_t>(c), std::move(bad.fault)});
    }
    check_tokens(making.builder, texts, failures);
    account(making);
}

// A row of `left` is bad: rows before it are all that is to come.
void Batcher::end_with(Fault fault, const Left& left, uint64_t row) {
    Start start = left.start_of(row);
    start.begun = begun_;
    for (const auto& [sample, elements] : left.begun)
        if (sample >= left.before[row]) start.begun.push_back({left.lanes[sample], elements});
    bad_row_ = {std::move(fault), std::move(start)};
}

// Rows of tokens and of what belongs to each of them are cut at the same places. `samples` has the
// keys and URLs of the rows.
void Batcher::check_tokens(const BatchBuilder& builder, std::span<const shf_text> samples,
                           std::vector<PendingBatch::Failure>& failures) const {
    const std::span<const ColumnPlan> plans = std::as_const(plan_).columns();
    std::vector<bool> bad(samples.size());
    for (const PendingBatch::Failure& failure : failures)
        bad[static_cast<size_t>(failure.row)] = true;
    for (size_t c = 1; c < plans.size(); ++c) {
        for (size_t row = 0; row < samples.size(); ++row) {
            const uint64_t first = builder.elements_of_row(0, row);
            const uint64_t own = builder.elements_of_row(c, row);
            if (own == first || bad[row]) continue;
            bad[row] = true;
            failures.push_back(
                {row, static_cast<uint32_t>(c),
                 fault_of_text(SHF_E_FORMAT, samples[row], plans[c].spec.name(),
                               plural(own, "element") + " beside " + std::to_string(first) +
                                   " of the column " + escape(plans[0].spec.name()) +
                                   ", where pack cuts all columns of a sample at the same places",
                               "name the fields to pack in decode")});
        }
    }
}

}  // namespace shf
