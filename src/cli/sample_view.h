// A sample as key and fields, wherever its bytes are.
#pragma once

#include "cli/library.h"
#include "cli/terminal.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

struct FieldView {
    std::string_view name;
    shf_bytes data;
};

// Borrowed.
struct SampleView {
    std::string_view key;
    std::span<const FieldView> fields;
    std::string_view shard = {};  // URL; empty: not known

    // NULL when there is none of that name.
    [[nodiscard]] const FieldView* find(std::string_view name) const {
        for (const FieldView& field : fields)
            if (field.name == name) return &field;
        return nullptr;
    }
    // For messages: "train.tar: sample 0001".
    [[nodiscard]] std::string name() const {
        return (shard.empty() ? "" : printable(shard) + ": ") + "sample " + printable(key);
    }
};

// The view of a sample of the library; `room` has its fields, and must outlive it like the sample.
inline SampleView view_of(const shf_sample* sample, std::vector<FieldView>& room) {
    room.clear();
    for (size_t i = 0; i < shf_sample_field_count(sample); ++i) {
        shf_bytes name;
        shf_bytes data;
        shf_sample_field(sample, i, &name, &data);
        room.push_back({text(name), data});
    }
    shf_bytes url;
    shf_sample_url(sample, &url);
    return {.key = key_of(sample), .fields = room, .shard = text(url)};
}

}  // namespace cli
