// Fuzz target of messages of samples: what is read can be written again, and is then read as the
// same.
#include "core/error.h"
#include "sample/sample_message.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <vector>

namespace {

std::optional<shf::SampleMessage> read(std::span<const uint8_t> message) {
    try {
        return shf::read_sample_message(message);
    } catch (const shf::Error& error) {
        if (error.code() != SHF_E_FORMAT) std::abort();
        return std::nullopt;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    // A copy of its own size, so that the sanitizer sees what is read behind the end.
    const std::vector<uint8_t> message(data, data + size);
    const auto sample = read(message);
    if (!sample) return 0;
    shf::SampleMessageWriter writer;
    if (sample->is_end) {
        const auto again = read(writer.end_mark());
        if (!again || !again->is_end) std::abort();
        return 0;
    }
    if (sample->key.empty()) std::abort();
    writer.begin(sample->key);
    for (const auto& field : sample->fields) {
        const std::span<uint8_t> room = writer.add(field.name, field.data.size());
        std::copy(field.data.begin(), field.data.end(), room.begin());
    }
    const auto again = read(writer.finish());
    if (!again || again->is_end || again->key != sample->key ||
        again->fields.size() != sample->fields.size())
        std::abort();
    for (size_t i = 0; i < sample->fields.size(); ++i)
        if (again->fields[i].name != sample->fields[i].name ||
            !std::equal(again->fields[i].data.begin(), again->fields[i].data.end(),
                        sample->fields[i].data.begin(), sample->fields[i].data.end()))
            std::abort();
    return 0;
}
