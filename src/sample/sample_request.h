// Which samples of a shard are wanted, and how.
#pragma once

#include "sample/resume.h"
#include "sample/sample_filter.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace shf {

class Source;
struct DecodePoints;

// Whether something holds for the fields of a name, as split_name() has it.
using FieldTest = std::function<bool(std::string_view field)>;

// What it points to must outlive the reading.
struct SampleRequest {
    const SampleFilter* filter = nullptr;  // NULL: every sample and field
    const Resume* resume = nullptr;        // NULL: from the first sample on
    bool single_samples = false;           // as BlockBuilder has it
    bool places = false;  // SampleSink::found() is called, and points of a compressed shard found
    // Hardly more bytes than that are wanted: memory is taken and reads are made for so many. 0:
    // not known.
    uint64_t expected = 0;
    // Large fields that it holds for: only the start of them is read, in plain files. Who wants the
    // rest reads it from `rest`, the same shard. NULL: no fields.
    const FieldTest* deferred = nullptr;
    std::shared_ptr<Source> rest = nullptr;
    // Of a compressed shard, from its index, and how many threads decompress then.
    std::shared_ptr<const DecodePoints> points = nullptr;
    uint64_t decoders = 1;
};

}  // namespace shf
