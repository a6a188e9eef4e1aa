#include "dataset/name_table.h"

#include "core/error.h"
#include "core/opening.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <random>
#include <string>

namespace shf {

namespace {

uint64_t random_key() {
    std::random_device device;
    return uint64_t{device()} << 32 | device();
}

}  // namespace

NameTable::NameTable(const Names& names, const NameWords& words)
    : names_(names), words_(words), key_(random_key()) {
    const size_t count = names.count();
    if (count >= free)
        throw Error(SHF_E_LIMIT, std::to_string(count) + " names are more than this version reads",
                    "split it");
    slots_.assign(static_cast<size_t>(size_for(count) / sizeof(Slot)), Slot{0, 0, free});
    // The table is larger than the cache: the places of the next names are fetched while names are
    // hashed.
    constexpr size_t ahead = 16;
    std::array<uint64_t, ahead> hashes;
    for (size_t i = 0; i < count + ahead; ++i) {
        if (i >= ahead) insert(hashes[i % ahead], static_cast<uint32_t>(i - ahead));
        if (i >= count) continue;
        if (i % 65536 == 0) Opening::check();
        hashes[i % ahead] = hash(names.name(i));
        __builtin_prefetch(&slots_[hashes[i % ahead] & (slots_.size() - 1)], 1);
    }
}

uint64_t NameTable::size_for(uint64_t count) {
    return std::bit_ceil(std::max<uint64_t>(count + count / 3, 8)) * sizeof(Slot);
}

uint64_t NameTable::hash(std::string_view name) const {
    return XXH3_64bits_withSeed(name.data(), name.size(), key_);
}

void NameTable::insert(uint64_t hash, uint32_t position) {
    const auto bits = static_cast<uint32_t>(hash >> 32);
    const size_t mask = slots_.size() - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        Slot& slot = slots_[i];
        if (slot.position == free) {
            slot = {bits, 0, position & free};
            return;
        }
        if (slot.hash_bits == bits && names_.name(slot.position) == names_.name(position)) {
            slot.duplicated = 1;
            return;
        }
    }
}

const NameTable::Slot* NameTable::slot_of(std::string_view name) const {
    const uint64_t hash = this->hash(name);
    const auto bits = static_cast<uint32_t>(hash >> 32);
    const size_t mask = slots_.size() - 1;
    for (size_t i = hash & mask; slots_[i].position != free; i = (i + 1) & mask)
        if (slots_[i].hash_bits == bits && names_.name(slots_[i].position) == name)
            return &slots_[i];
    return nullptr;
}

size_t NameTable::find(std::string_view name) const {
    const Slot* slot = slot_of(name);
    if (!slot)
        throw Error(Fault{.code = SHF_E_NOT_FOUND,
                          .shard = {},
                          .member = escape(name),
                          .cause = words_.missing,
                          .help = words_.missing_help});
    if (slot->duplicated != 0) ambiguous(name);
    return slot->position;
}

// Names the first two positions, and the count of more. Rare, so it looks at all names.
void NameTable::ambiguous(std::string_view name) const {
    std::vector<size_t> positions;
    for (size_t i = 0; i < names_.count(); ++i)
        if (names_.name(i) == name) positions.push_back(i);
    const std::string count = std::to_string(positions.size());
    const std::string times = positions.size() > 2 ? count + " times, first" : "twice,";
    throw Error(Fault{.code = SHF_E_AMBIGUOUS,
                      .shard = {},
                      .member = escape(name),
                      .cause = std::string(words_.name) + " is there " + times + words_.places +
                               std::to_string(positions[0]) + " and " +
                               std::to_string(positions[1]),
                      .help = words_.help});
}

}  // namespace shf
