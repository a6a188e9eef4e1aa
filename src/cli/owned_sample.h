// A sample with its own bytes.
#pragma once

#include "cli/sample_view.h"

#include <string>
#include <utility>
#include <vector>

namespace cli {

struct OwnedSample {
    std::string key;
    std::vector<std::pair<std::string, std::string>> fields;  // names and contents

    // `room` has the fields, and must outlive the result like this.
    [[nodiscard]] SampleView view(std::vector<FieldView>& room) const {
        room.clear();
        for (const auto& [name, data] : fields)
            room.push_back({name, {reinterpret_cast<const uint8_t*>(data.data()), data.size()}});
        return {.key = key, .fields = room};
    }
};

}  // namespace cli
