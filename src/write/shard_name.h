// The names of the shards that a writer makes, from a pattern, "train-%06d.tar", or from a function
// of the program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>

namespace shf {

struct Options;

class ShardName {
  public:
    // `pattern` has at most one number, %d or %0Nd with N up to 20, and %% for a percent sign. In a
    // "pipe:" URL the same. It never reaches printf. Throws Error(USAGE).
    explicit ShardName(const std::string& pattern);

    [[nodiscard]] bool numbered() const { return numbered_; }
    [[nodiscard]] std::string at(uint64_t number) const;

  private:
    std::string before_, after_;
    uint64_t width_ = 0;
    bool numbered_ = false;
};

// The names of one writer, one after another.
class ShardNames {
  public:
    // `pattern` NULL: the function in `options`, which is asked for the first name here. `options`
    // must outlive it. Throws Error: USAGE, CANCELLED.
    ShardNames(const char* pattern, const Options& options);

    // Whether there can be more shards than one.
    [[nodiscard]] bool many() const { return !pattern_ || pattern_->numbered(); }
    // Before the first take().
    [[nodiscard]] const std::string& first() const { return next_; }
    // Asks the function for the next name, unless it has given it. Throws Error; nothing is changed
    // then.
    void prepare();
    // The next name, as it was given. The writer works in `folder`. Throws Error(USAGE) for the
    // name of an earlier shard.
    std::string take(const std::string& folder);
    // The last name that was taken is the next one: its shard got no sample.
    void put_back();

  private:
    [[nodiscard]] std::string ask() const;

    const Options& options_;
    std::optional<ShardName> pattern_;
    uint64_t number_;   // of next_
    std::string next_;  // empty: not asked for yet
    std::string last_, last_place_;
    std::unordered_set<std::string> places_;  // what a function gave so far
};

}  // namespace shf
