// Shell patterns in paths: which files of this machine they match.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

class Glob {
  public:
    // Before a literal character of a pattern. No path has this byte.
    static constexpr char literal = '\0';

    // Whether `pattern` has a *, ? or [ that does not stand for itself.
    static bool is_pattern(std::string_view pattern);
    // The path that `pattern` is when all of it is literal.
    static std::string literal_path(std::string_view pattern);
    // What every match of `pattern` begins with, up to the first character that may differ.
    static std::string literal_start(std::string_view pattern);
    // Whether `text` matches all of `pattern`, in which * and ? and sets match no slash.
    static bool fits(std::string_view pattern, const std::string& text);
    // Whether something is called `path`, be it a symbolic link to nothing. Throws Error(IO) when
    // that is unknown.
    static bool exists(const std::string& path);

    // What matches, in the order of the bytes: * and ? and sets in brackets, none of which matches
    // a slash, or the dot that a name begins with. Throws Error(IO) for a folder that cannot be
    // listed: its files must not be missing in silence.
    std::vector<std::string> matches(std::string_view pattern);

  private:
    using Names = std::vector<std::string>;
    void walk(std::string path, std::string_view rest, std::vector<std::string>& found);
    std::shared_ptr<const Names> names_in(const std::string& folder);

    // The folder that was listed last, because patterns often differ in the name alone.
    std::string listed_;
    std::shared_ptr<const Names> names_;
};

}  // namespace shf
