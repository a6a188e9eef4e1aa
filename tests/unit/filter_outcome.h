// What a reader sees of a compressed input, and that it does not depend on how bytes are cut.
#pragma once

#include "codec/filter.h"
#include "core/error.h"
#include "core/options.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <string_view>

namespace shf::test {

struct Outcome {
    std::string bytes;  // before the end or the fault
    int32_t code = SHF_OK;
    uint64_t offset = no_offset;
    std::string message;
    std::string codec;
    bool trailing = false;
    uint64_t verified = 0;

    bool operator==(const Outcome&) const = default;
};

inline void PrintTo(const Outcome& o, std::ostream* to) {
    *to << o.bytes.size() << " bytes, code " << o.code << ", codec " << o.codec << ", trailing "
        << o.trailing << ": " << o.message;
}

// Reads all of `input`, which comes in reads of `chunk` bytes (0: any), with spans of `span` bytes.
inline Outcome filter(std::string_view input, const Options& options = {}, size_t chunk = 0,
                      size_t span = 256 << 10) {
    Outcome outcome;
    FilterReport report;
    const auto source =
        memory_source({reinterpret_cast<const uint8_t*>(input.data()), input.size()}, chunk);
    const auto reader = open_filter(source->open_sequential(0), options, report);
    std::string buffer(span, '\0');
    try {
        for (;;) {
            const size_t count =
                reader->read({reinterpret_cast<uint8_t*>(buffer.data()), buffer.size()});
            if (count == 0) break;
            outcome.bytes.append(buffer, 0, count);
        }
        reader->finish();
    } catch (const Error& error) {
        outcome.code = error.code();
        outcome.offset = error.fault().offset;
        outcome.message = error.what();
        // Faults are sticky.
        EXPECT_THROW(reader->read({reinterpret_cast<uint8_t*>(buffer.data()), buffer.size()}),
                     Error);
    }
    if (report.codec != nullptr) outcome.codec = report.codec;
    outcome.trailing = report.trailing;
    outcome.verified = report.verified;
    return outcome;
}

// The one outcome of all ways to cut input and output.
inline Outcome always(std::string_view input, const Options& options = {}) {
    const Outcome first = filter(input, options);
    static constexpr size_t chunks[] = {1, 7, 511, 512, 513, 65536};
    static constexpr size_t spans[] = {17, 512, 4096, 65536, 1 << 20, 70001};
    for (size_t i = 0; i < std::size(chunks); ++i)
        for (size_t j = 0; j < std::size(spans); ++j) {
            // All pairs over large data say nothing more and cost minutes.
            if (first.bytes.size() > 300000 && i != j) continue;
            const Outcome other = filter(input, options, chunks[i], spans[j]);
            EXPECT_EQ(first, other) << "chunk " << chunks[i] << ", span " << spans[j];
            if (first != other) return other;
        }
    // A nested codec is noticed after bytes that are its magic; with tiny spans they are seen
    // before.
    if (input.size() < 20000) {
        const Outcome tiny = filter(input, options, 1, 1);
        EXPECT_EQ(first.code, tiny.code);
        EXPECT_EQ(first.offset, tiny.offset);
        EXPECT_EQ(first.message, tiny.message);
        if (first.code != SHF_E_UNSUPPORTED) {
            EXPECT_EQ(first.bytes, tiny.bytes);
        }
    }
    return first;
}

}  // namespace shf::test
