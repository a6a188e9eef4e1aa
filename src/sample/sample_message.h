// A sample as one message, in the form that tarp and tarproc send: a map of MessagePack with
// __key__ and the bytes of each field. A map with __EOF__ is the end mark of a sender.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace shf {

// Lies in the bytes of the message.
struct SampleMessage {
    struct Field {
        std::string_view name;  // as the message has it
        std::span<const uint8_t> data;
    };
    std::string_view key;  // not empty
    std::vector<Field> fields;
    bool is_end = false;  // no sample, but the end mark
};

// Key and names are those that a shard with the members "KEY.NAME" has. Throws Error(FORMAT). Takes
// no memory that the bytes only claim to need.
SampleMessage read_sample_message(std::span<const uint8_t> message);

// Makes messages. The memory of the last one is used again.
class SampleMessageWriter {
  public:
    // A sample without fields.
    void begin(std::string_view key);
    // Room for the `size` bytes of the next field, valid until the next call. Throws Error(LIMIT)
    // from 4 GiB on.
    std::span<uint8_t> add(std::string_view name, uint64_t size);
    // The whole message, valid until the next call.
    std::span<const uint8_t> finish();
    // That nothing more comes.
    std::span<const uint8_t> end_mark();

  private:
    void clear();

    std::vector<uint8_t> bytes_;  // with room for the head of the map in front
    uint32_t entries_ = 0;
};

}  // namespace shf
