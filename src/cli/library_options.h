// The options of the library as words of the command line: --NAME VALUE for every option that
// shf_option_describe lists. So a verb takes new options by itself.
#pragma once

#include "cli/arguments.h"
#include "cli/library.h"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

class LibraryOptions {
  public:
    LibraryOptions();
    LibraryOptions(const LibraryOptions&) = delete;
    LibraryOptions& operator=(const LibraryOptions&) = delete;

    // Adds the options that one of `openers` takes ("stream writer"), but for names that
    // `arguments` has already. "_" may be written "-". An option of type bool needs no value, and
    // has a
    // --no-NAME beside it.
    void declare(Arguments& arguments, std::string_view openers);
    // The words of a command line with "--NAME true" of an option of type bool as one word, which
    // is how the parser takes a value that may be missing.
    [[nodiscard]] std::vector<std::string> joined(std::vector<std::string> words) const;
    // Sets what the command line has, and who receives messages: those of `level` and more serious
    // ones go to standard error. Throws Failure.
    void apply(int32_t level);

    // Whether warnings and progress are unwanted.
    [[nodiscard]] bool is_quiet() const { return level_ == SHF_LOG_ERROR; }

    // For a verb: another value of an option. Throws Failure.
    void set(const char* name, const std::string& value) const;
    // The same, where the command line has none. Throws Failure.
    void set_unless_given(const char* name, const std::string& value) const {
        if (!given(name)) set(name, value);
    }
    // Whether the command line has the option.
    [[nodiscard]] bool given(const std::string& name) const;
    [[nodiscard]] std::string get(const char* name) const;
    // "NAME=VALUE" of each option that the command line has and `opener` takes.
    [[nodiscard]] std::vector<std::string> given_to(std::string_view opener) const;
    [[nodiscard]] const shf_options* handle() const { return options_.get(); }
    // A copy of what is set, which gives its messages to the same.
    [[nodiscard]] Options copy() const;

  private:
    Options options_;
    std::map<std::string, std::string> values_;  // what the parser stores
    std::set<std::string> switches_;             // --NAME of options of type bool
    int32_t level_ = SHF_LOG_WARNING;
};

// All options of `openers` for people to read.
std::string option_table(std::string_view openers);

}  // namespace cli
