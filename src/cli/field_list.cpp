#include "cli/field_list.h"

#include "cli/terminal.h"

#include <sstream>

namespace cli {

FieldList::FieldList(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
        std::istringstream words(text);
        std::string word;
        while (words >> word) {
            Item item = {.text = word, .name = {}, .alternatives = {}};
            std::string names = word;
            const size_t colon = word.find(':');
            if (colon != std::string::npos) {
                item.name = word.substr(0, colon);
                names = word.substr(colon + 1);
            }
            std::istringstream list(names + ",");
            std::string name;
            bool is_bad = colon == 0;
            while (std::getline(list, name, ',')) {
                is_bad = is_bad || name.empty();
                item.alternatives.push_back(name);
            }
            if (is_bad || item.alternatives.empty())
                throw Failure(wrong_command_line,
                              "fields: " + printable(word) +
                                  " is no field; help: write jpg, or png,jpg for alternatives, or "
                                  "img:png,jpg to rename");
            items_.push_back(std::move(item));
        }
    }
}

bool FieldList::choose(const SampleView& sample, Missing missing,
                       std::vector<FieldView>& out) const {
    if (all()) {
        out.assign(sample.fields.begin(), sample.fields.end());
        return true;
    }
    out.clear();
    for (const Item& item : items_) {
        const FieldView* found = nullptr;
        for (size_t i = 0; !found && i < item.alternatives.size(); ++i)
            found = sample.find(item.alternatives[i]);
        if (found) {
            out.push_back({item.name.empty() ? found->name : item.name, found->data});
            continue;
        }
        if (missing == Missing::keep) continue;
        if (missing == Missing::skip) return false;
        throw Failure(failed, sample.name() + " has no field " + printable(item.text) +
                                  "; help: --missing skip leaves such samples out, --missing keep "
                                  "writes them without it");
    }
    return true;
}

Missing FieldList::missing_of(const std::string& word) {
    return word == "skip" ? Missing::skip : word == "keep" ? Missing::keep : Missing::fail;
}

}  // namespace cli
