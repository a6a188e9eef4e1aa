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

class NameTable {
  public:
    // The names must outlive the table. Takes 8 bytes for each of at most 2^31 - 1 names, times up
    // to 8/3. `missing` is what find() says of other names. Throws Error(LIMIT).
    NameTable(const Names& names, const char* missing);

    // The position of the one thing of that name. Throws Error: NOT_FOUND, AMBIGUOUS.
    [[nodiscard]] size_t find(std::string_view name) const;
    [[nodiscard]] bool contains(std::string_view name) const { return slot_of(name) != nullptr; }

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
    const char* const missing_;
    const uint64_t key_;
    std::vector<Slot> slots_;  // a power of two of them, at most three quarters in use
};

}  // namespace shf
