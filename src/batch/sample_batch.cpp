#include "batch/sample_batch.h"

#include "batch/mixed_rows.h"
#include "core/error.h"
#include "core/parallel.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

namespace shf {

namespace {

// The caller has chosen the samples of the batch.
Options as_given(Options options) {
    options.bucket.clear();
    options.batch_elements = 0;
    options.tokenizer.reset();
    return options;
}

}  // namespace

BatchRef make_batch(std::span<Sample* const> samples, const Options& options,
                    const Allocate& allocate) {
    BatchPlan plan(as_given(options));
    BatchBuilder builder(plan, samples.size(), allocate);
    std::vector<DecodeWork> work;
    uint64_t bytes = 0;
    // A bad field of an earlier sample, which only decoding finds, is the one to tell.
    std::optional<Fault> fault;
    for (const Sample* sample : samples) {
        try {
            builder.add(*sample->block, sample->index);
        } catch (...) {
            fault = describe_exception();
            break;
        }
        for (DecodeWork& todo : builder.take_work()) work.push_back(todo);
    }
    if (builder.rows() == 0) {
        if (fault) throw Error(std::move(*fault));
        throw Error(SHF_E_FORMAT, "none of the samples has all fields of the batch",
                    "leave out a column of decode, or set missing=empty");
    }
    for (DecodeWork& todo : builder.close()) work.push_back(todo);
    std::sort(work.begin(), work.end(), [](const DecodeWork& a, const DecodeWork& b) {
        return std::pair(a.row, a.column) < std::pair(b.row, b.column);
    });
    for (const DecodeWork& todo : work) bytes += todo.type.bytes();
    std::mutex mutex;
    std::vector<std::unique_ptr<DecodeScratch>> scratches;  // those that no thread has
    run_jobs(
        work.size(), usual_run, options.decode_threads, bytes,
        [&](size_t i) {
            std::unique_ptr<DecodeScratch> scratch;
            {
                const std::lock_guard lock(mutex);
                if (!scratches.empty()) {
                    scratch = std::move(scratches.back());
                    scratches.pop_back();
                }
            }
            if (!scratch) scratch = std::make_unique<DecodeScratch>();
            builder.decode(work[i], *scratch);
            const std::lock_guard lock(mutex);
            scratches.push_back(std::move(scratch));
        },
        [](size_t i) { return i; });
    if (fault) throw Error(std::move(*fault));
    BatchRef batch = builder.finish();
    mix_rows(*batch, std::as_const(plan).columns(), allocate);
    return batch;
}

}  // namespace shf
