// Fuzz target of the filter: any bytes, small limits, and the same outcome however they are cut.
//
// The first byte chooses cuts and switches, so that a corpus file says how it is read: bits 0 and 1
// the size of the reads, bits 2 and 3 the size of the spans, bit 4 trailing=ignore.
#include "codec/filter.h"
#include "core/error.h"
#include "core/options.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace {

using shf::Error;
using shf::FilterReport;
using shf::Options;

struct Outcome {
    uint64_t size = 0;
    uint64_t sum = 0;  // of the bytes, by position
    int32_t code = SHF_OK;
    uint64_t offset = 0;

    bool operator==(const Outcome&) const = default;
};

// Bombs of deflate and lz4 are below max_ratio; more output tells nothing new.
constexpr uint64_t enough = uint64_t{4} << 20;

Outcome run(std::span<const uint8_t> input, const Options& options, size_t chunk, size_t span) {
    Outcome outcome;
    FilterReport report;
    const auto reader =
        shf::open_filter(shf::memory_source(input, chunk)->open_sequential(0), options, report);
    std::vector<uint8_t> buffer(span);
    try {
        while (outcome.size < enough) {
            const size_t count = reader->read(
                std::span(buffer).first(std::min<uint64_t>(span, enough - outcome.size)));
            if (count == 0) break;
            if (count > span) std::abort();
            for (size_t i = 0; i < count; ++i) outcome.sum = outcome.sum * 31 + buffer[i];
            outcome.size += count;
        }
    } catch (const Error& error) {
        outcome.code = error.code();
        outcome.offset = error.fault().offset;
        if (error.code() == SHF_E_INTERNAL) std::abort();
        // Every fault but a second layer stands right behind the delivered bytes.
        if (error.code() != SHF_E_UNSUPPORTED && outcome.offset != outcome.size) std::abort();
    }
    return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    static constexpr size_t chunks[] = {1, 7, 513, 0}, spans[] = {16, 513, 65536, 1 << 20};
    const unsigned choice = data[0];
    Options options;
    options.max_window = 1 << 20;
    options.max_ratio = 50;
    options.trailing = (choice & 16) != 0 ? shf::Trailing::ignore : shf::Trailing::refuse;
    const std::span<const uint8_t> input(data + 1, size - 1);

    const Outcome whole = run(input, options, 0, 256 << 10);
    const Outcome cut = run(input, options, chunks[choice & 3], spans[(choice >> 2) & 3]);
    if (whole != cut) std::abort();
    return 0;
}
