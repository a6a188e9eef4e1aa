#include "cli/library_options.h"

#include "cli/interrupts.h"
#include "cli/terminal.h"

#include <algorithm>
#include <new>
#include <sstream>

namespace cli {

namespace {

Options new_options() {
    Options options(shf_options_new());
    if (!options) throw std::bad_alloc();
    return options;
}

bool takes(size_t option, std::string_view openers) {
    std::istringstream mine(shf_option_describe(option, SHF_OPTION_OPENERS));
    std::string opener;
    while (mine >> opener) {
        std::istringstream wanted{std::string(openers)};
        std::string word;
        while (wanted >> word)
            if (word == opener) return true;
    }
    return false;
}

std::string dashed(std::string name) {
    std::replace(name.begin(), name.end(), '_', '-');
    return name;
}

void log(void* /*ctx*/, int32_t level, const char* message) {
    say(level == SHF_LOG_INFO ? message : std::string("warning: ") + message);
}

int32_t is_interrupted(void* /*ctx*/) {
    return interrupted() ? 1 : 0;
}

}  // namespace

LibraryOptions::LibraryOptions() : options_(new_options()) {}

void LibraryOptions::declare(Arguments& arguments, std::string_view openers) {
    for (size_t i = 0; const char* name = shf_option_describe(i, SHF_OPTION_NAME); ++i) {
        if (!takes(i, openers)) continue;
        const std::string plain = std::string("--") + name;
        const std::string with_dashes = "--" + dashed(name);
        if (arguments.has(plain) || arguments.has(with_dashes)) continue;
        const std::string names = plain == with_dashes ? plain : with_dashes + "," + plain;
        const std::string_view type = shf_option_describe(i, SHF_OPTION_TYPE);
        const char* const help = shf_option_describe(i, SHF_OPTION_HELP);
        if (type == "bool") {
            arguments.add_library_flag(names + ",!--no-" + dashed(name), values_[name], help);
            switches_.insert({plain, with_dashes});
        } else {
            arguments.add_library_option(names, values_[name], help);
        }
    }
}

std::vector<std::string> LibraryOptions::joined(std::vector<std::string> words) const {
    std::vector<std::string> made;
    bool are_options = true;
    for (std::string& word : words) {
        are_options = are_options && word != "--";
        if (are_options && (word == "true" || word == "false") && !made.empty() &&
            switches_.contains(made.back()))
            made.back() += "=" + word;
        else
            made.push_back(std::move(word));
    }
    return made;
}

void LibraryOptions::apply(int32_t level) {
    level_ = level;
    for (const auto& [name, value] : values_)
        if (!value.empty()) set(name.c_str(), value);
    shf_options_set_log(options_.get(), level, log, nullptr);
    shf_options_set_interrupt(options_.get(), is_interrupted, nullptr);
}

void LibraryOptions::set(const char* name, const std::string& value) const {
    call(shf_options_set, options_.get(), name, value.c_str());
}

bool LibraryOptions::given(const std::string& name) const {
    const auto value = values_.find(name);
    return value != values_.end() && !value->second.empty();
}

std::string LibraryOptions::get(const char* name) const {
    shf_bytes value;
    call(shf_options_get, options_.get(), name, &value);
    return std::string(text(value));
}

std::vector<std::string> LibraryOptions::given_to(std::string_view opener) const {
    std::vector<std::string> made;
    for (size_t i = 0; const char* name = shf_option_describe(i, SHF_OPTION_NAME); ++i)
        if (given(name) && takes(i, opener)) made.push_back(std::string(name) + "=" + get(name));
    return made;
}

Options LibraryOptions::copy() const {
    Options made = new_options();
    for (size_t i = 0; const char* name = shf_option_describe(i, SHF_OPTION_NAME); ++i) {
        const std::string value = get(name);
        call(shf_options_set, made.get(), name, value.c_str());
    }
    shf_options_set_log(made.get(), level_, log, nullptr);
    shf_options_set_interrupt(made.get(), is_interrupted, nullptr);
    return made;
}

std::string option_table(std::string_view openers) {
    std::string made;
    std::string_view group;
    for (size_t i = 0; const char* name = shf_option_describe(i, SHF_OPTION_NAME); ++i) {
        if (!takes(i, openers)) continue;
        const std::string_view mine = shf_option_describe(i, SHF_OPTION_GROUP);
        if (mine != group) {
            made += (made.empty() ? "" : "\n") + std::string(mine) + ":\n";
            group = mine;
        }
        const std::string_view preset = shf_option_describe(i, SHF_OPTION_DEFAULT);
        made += "  --" + dashed(name) + " " + shf_option_describe(i, SHF_OPTION_RANGE) +
                (preset.empty() ? "" : " (default " + std::string(preset) + ")") + "\n" +
                wrapped(shf_option_describe(i, SHF_OPTION_HELP), 6);
    }
    return made;
}

}  // namespace cli
