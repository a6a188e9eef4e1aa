// What a stream or dataset is asked for of its shards: the options "fields", "select_keys" and
// "slice", read once. The data of what is not wanted is skipped.
#pragma once

#include <clocale>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace shf {

struct Options;
struct Schema;

// The option "fields".
class FieldFilter {
  public:
    // Throws Error(USAGE) that points into the value.
    explicit FieldFilter(std::string_view value);

    [[nodiscard]] bool all() const { return names_.empty(); }
    // Whether `field`, as split_name() or a sample has it, is wanted.
    [[nodiscard]] bool wants(std::string_view field) const;

  private:
    std::vector<std::string> names_;  // lower-cased; none: all are wanted
};

// All three. Does not change: any number of threads.
class SampleFilter {
  public:
    // Throws Error(USAGE) that points into a value.
    explicit SampleFilter(const Options& options);

    [[nodiscard]] bool all() const;
    // The number of a sample in its shard matters, so that its samples must be counted from the
    // start.
    [[nodiscard]] bool counts() const { return start_ != 0 || stop_ != UINT64_MAX || step_ != 1; }
    // Whether sample `number` of its shard, with this key, is wanted.
    [[nodiscard]] bool wants_sample(uint64_t number, const std::string& key) const;
    [[nodiscard]] bool wants_field(std::string_view field) const { return fields_.wants(field); }
    // Whether anything is left of a sample with these fields.
    [[nodiscard]] bool wants(uint64_t number, const std::string& key, const Schema& schema) const;

  private:
    void parse_patterns(std::string_view value);
    void parse_slice(std::string_view value);
    [[nodiscard]] bool matches(const std::string& key) const;

    struct FreeLocale {
        void operator()(locale_t locale) const { ::freelocale(locale); }
    };
    using Locale = std::unique_ptr<std::remove_pointer_t<locale_t>, FreeLocale>;

    const FieldFilter fields_;
    std::vector<std::string> patterns_;  // none: every key
    Locale bytes_;                       // in which a character is a byte
    uint64_t start_ = 0, stop_ = UINT64_MAX, step_ = 1;
};

}  // namespace shf
