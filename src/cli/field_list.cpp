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

bool FieldList::choose(const shf_sample* sample, Missing missing, std::vector<Chosen>& out) const {
    out.clear();
    if (all()) {
        for (size_t i = 0; i < shf_sample_field_count(sample); ++i) {
            shf_bytes name;
            shf_bytes data;
            shf_sample_field(sample, i, &name, &data);
            out.push_back({text(name), data});
        }
        return true;
    }
    for (const Item& item : items_) {
        bool found = false;
        for (const std::string& name : item.alternatives) {
            shf_bytes data;
            found = shf_sample_find(sample, name.data(), name.size(), &data) == SHF_OK;
            if (!found) continue;
            out.push_back({item.name.empty() ? name : item.name, data});
            break;
        }
        if (found || missing == Missing::keep) continue;
        if (missing == Missing::skip) return false;
        shf_bytes url;
        shf_sample_url(sample, &url);
        throw Failure(failed, printable(text(url)) + ": sample " + printable(key_of(sample)) +
                                  " has no field " + printable(item.text) +
                                  "; help: --missing skip leaves such samples out, --missing keep "
                                  "writes them without it");
    }
    return true;
}

Missing FieldList::missing_of(const std::string& word) {
    return word == "skip" ? Missing::skip : word == "keep" ? Missing::keep : Missing::fail;
}

}  // namespace cli
