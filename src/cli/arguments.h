// What a verb takes on the command line: declared once, then parsed, and listed for help, manual
// page and completions. Only arguments.cpp includes the parser, CLI11, whose headers take seconds
// to compile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cli {

// One argument while it is declared. Valid as long as its Arguments.
class Argument {
  public:
    // What the help calls its value: "FILE".
    Argument& type_name(const std::string& name);
    Argument& required();
    // It may be given several times, with one value each time.
    Argument& repeatable();
    // How many values it takes when it is given.
    Argument& expected(int count);
    Argument& expected(int least, int most);
    // Other values are wrong.
    Argument& one_of(const std::vector<std::string>& words);
    Argument& within(int64_t least, int64_t most);
    Argument& positive();
    // They are not given together.
    Argument& excludes(const Argument& other);

  private:
    friend class Arguments;
    explicit Argument(CLI::Option* option) : option_(option) {}

    CLI::Option* option_;
};

// An argument as the pages show it.
struct ArgumentText {
    std::string positional;           // "URL"; empty for an option
    std::vector<std::string> shorts;  // without the hyphen: "o"
    std::vector<std::string> longs;   // without the hyphens: "output"
    std::string value;                // "FILE"; empty for a flag
    std::string help;
    bool many = false;  // takes several values
    bool required = false;
    bool common = false;   // every verb has it
    bool library = false;  // an option of the library, which help does not list
};

class Arguments {
  public:
    // Those that every verb has: --help, --quiet, --verbose.
    Arguments();
    ~Arguments();
    Arguments(const Arguments&) = delete;
    Arguments& operator=(const Arguments&) = delete;

    void describe(const std::string& text) { description_ = text; }
    [[nodiscard]] const std::string& description() const { return description_; }

    // `names` as "-o,--output", or "URL" for an argument by its place. `value` keeps what it has
    // when the argument is missing, and must live until parse() returned. A new type of values is
    // added at the end of arguments.cpp.
    template <typename Value>
    Argument add_option(const std::string& names, Value& value, const std::string& help);
    // Takes no value. A Value of text gets "true" or "false", or what stands in braces
    // ("--decode{auto}") and behind "=".
    template <typename Value>
    Argument add_flag(const std::string& names, Value& value, const std::string& help);
    // An option of the library; the last value given counts.
    void add_library_option(const std::string& names, std::string& value, const std::string& help);
    void add_library_flag(const std::string& names, std::string& value, const std::string& help);
    // Whether there is one of this name: "--output".
    [[nodiscard]] bool has(const std::string& name) const;

    // Stores the values. Returns false when help is asked for. Throws Failure with `verb` in its
    // help.
    [[nodiscard]] bool parse(std::vector<std::string> words, const std::string& verb);
    [[nodiscard]] bool is_quiet() const { return quiet_; }
    [[nodiscard]] bool is_verbose() const { return verbose_; }

    // In the order in which they were added.
    [[nodiscard]] std::vector<ArgumentText> texts() const;

  private:
    std::unique_ptr<CLI::App> app_;
    std::string description_;
    bool quiet_ = false;
    bool verbose_ = false;
};

}  // namespace cli
