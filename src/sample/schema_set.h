// The different lists of field names that the samples of a shard have.
#pragma once

#include "sample/block.h"

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace shf {

class SchemaSet {
  public:
    // The number of a list of names, the same for equal ones.
    uint32_t number(const std::shared_ptr<const Schema>& schema) {
        if (schema == last_) return last_number_;  // as a rule it is that of the sample before
        const auto [place, fresh] =
            numbers_.try_emplace(schema->names, static_cast<uint32_t>(list_.size()));
        if (fresh) list_.push_back(schema);
        last_ = schema;
        last_number_ = place->second;
        return last_number_;
    }
    [[nodiscard]] const std::vector<std::shared_ptr<const Schema>>& list() const { return list_; }

  private:
    std::unordered_map<std::string, uint32_t> numbers_;
    std::vector<std::shared_ptr<const Schema>> list_;
    std::shared_ptr<const Schema> last_;
    uint32_t last_number_ = 0;
};

}  // namespace shf
