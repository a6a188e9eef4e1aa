// Which fields of a sample are written, and under which names.
#pragma once

#include "cli/sample_view.h"

#include <string>
#include <string_view>
#include <vector>

namespace cli {

enum class Missing { fail, skip, keep };

// "jpg cls", "img:jpg,png cls": items separated by blanks. An item keeps a field, NEW:OLD renames
// it, and of names separated by commas the first that is there is taken.
class FieldList {
  public:
    // Throws Failure(wrong_command_line).
    explicit FieldList(const std::vector<std::string>& texts);

    [[nodiscard]] bool all() const { return items_.empty(); }

    // The fields of a sample, borrowed from it and from this, in the order of the list; of an empty
    // list all in the order of the sample. Returns false when the sample lacks one and `missing` is
    // skip. Throws Failure when it lacks one and `missing` is fail.
    bool choose(const SampleView& sample, Missing missing, std::vector<FieldView>& out) const;

    // What a command line has for Missing: "fail", "skip" or "keep".
    static Missing missing_of(const std::string& word);

  private:
    struct Item {
        std::string text;
        std::string name;  // empty: that of the field that is found
        std::vector<std::string> alternatives;
    };
    std::vector<Item> items_;
};

}  // namespace cli
