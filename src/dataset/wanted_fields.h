// Which fields of a shard's samples the option "fields" asks for. Worked out once for each list of
// field names, of which a shard has few.
#pragma once

#include "sample/block.h"
#include "sample/sample_filter.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace shf {

class WantedFields {
  public:
    struct Choice {
        std::shared_ptr<const Schema> schema;  // of the wanted fields alone
        std::vector<uint32_t> numbers;         // theirs in the whole list, ascending
    };

    WantedFields(const FieldFilter& filter,
                 std::span<const std::shared_ptr<const Schema>> schemas) {
        choices_.reserve(schemas.size());
        for (const auto& schema : schemas) choices_.push_back(choose(filter, schema));
    }
    // Of the list of names with this number.
    [[nodiscard]] const Choice& operator[](size_t schema) const { return choices_[schema]; }

  private:
    static Choice choose(const FieldFilter& filter, const std::shared_ptr<const Schema>& schema) {
        Choice choice{schema, {}};
        Schema kept;
        for (uint32_t i = 0; i < schema->ends.size(); ++i) {
            const std::string_view name = schema->name(i);
            if (!filter.wants(name)) continue;
            choice.numbers.push_back(i);
            kept.names += name;
            kept.ends.push_back(static_cast<uint32_t>(kept.names.size()));
            kept.names += '/';
        }
        if (choice.numbers.size() < schema->ends.size())
            choice.schema = std::make_shared<const Schema>(std::move(kept));
        return choice;
    }

    std::vector<Choice> choices_;
};

}  // namespace shf
