// Finds members by name: a hash table of positions, keyed so that nobody can write names that all
// fall into one place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace shf {

// Things with a name each, by position.
class Names {
  public:
    virtual ~Names() = default;
    [[nodiscard]] virtual size_t count() const = 0;
    [[nodiscard]] virtual std::string_view name(size_t position) const = 0;
};

// What NameTable::find says of names that it does not find, or finds more than once.
struct NameWords {
    const char* missing;
    const char* missing_help;
    const char* name;    // "the name" of a member, "the key" of a sample
    const char* places;  // " at positions "
    const char* help;    // for names that are there more than once
};
inline constexpr NameWords member_words{"there is no member of this name",
                                        "give its whole path, as the archive lists it", "the name",
                                        " at positions ", "read it by its position"};
inline constexpr NameWords sample_words{"there is no sample with this key",
                                        "a key is the path up to the first dot of the file name",
                                        "the key", " as samples ", "read it by its number"};

class NameTable {
  public:
    // The names must outlive the table. Takes 8 bytes for each of at most 2^31 - 1 names, times up
    // to 8/3. Throws Error(LIMIT).
    NameTable(const Names& names, const NameWords& words);

    // What a table of so many names takes, in bytes.
    static uint64_t size_for(uint64_t count);

    // The position of the one thing of that name. Throws Error: NOT_FOUND, AMBIGUOUS.
    [[nodiscard]] size_t find(std::string_view name) const;

  private:
    struct Slot {
        uint32_t hash_bits;       // of the name's hash, to compare few names
        uint32_t duplicated : 1;  // more members have the name; this is the first one
        uint32_t position : 31;   // `free` in an unused slot
    };
    static constexpr uint32_t free = (uint32_t{1} << 31) - 1;

    [[nodiscard]] uint64_t hash(std::string_view name) const;
    void insert(uint64_t hash, uint32_t position);
    [[nodiscard]] const Slot* slot_of(std::string_view name) const;
    [[noreturn]] void ambiguous(std::string_view name) const;

    const Names& names_;
    const NameWords words_;
    const uint64_t key_;
    std::vector<Slot> slots_;  // a power of two of them, at most three quarters in use
};

}  // namespace shf
