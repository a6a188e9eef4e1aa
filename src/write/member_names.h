// Which names a writer makes: those that come back as they were.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shf {

struct Options;

// Composes member names and refuses those that readers would take for something else. One shard.
class MemberNames {
  public:
    explicit MemberNames(const Options& options) : options_(options) {}

    // Begins a sample. Throws Error(USAGE) for a key without name, or with a NUL.
    void begin(std::string_view key);
    // The member name of a field, "KEY.FIELD". Throws Error(USAGE) when a reader would find another
    // key or field in it, when a field of this sample has that name, or when the name must not
    // reach a disk (absolute, "..").
    std::string name(std::string_view field);

  private:
    void check(std::string_view name, std::string_view field) const;

    const Options& options_;
    std::string key_;
    std::vector<std::string> fields_;  // of this sample, in lower case
};

}  // namespace shf
