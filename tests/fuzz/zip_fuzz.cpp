// Fuzz target of the ZIP directory, its entries and their methods: any bytes, small limits. Every
// member is read in both ways; what can be read has its CRC, and a stream sees nothing else.
//
// The first byte holds the switches, so that a corpus file says how it is read: bit 0
// zip_prefix=allow, bit 1 zip_overlap=allow, bit 2 trailing=ignore.
#include "../unit/shard_driver.h"

#include "codec/magic.h"
#include "core/checksum.h"
#include "dataset/members.h"
#include "dataset/name_table.h"
#include "member/member_walk.h"

#include <array>
#include <cstdlib>
#include <optional>
#include <vector>

namespace {

using shf::Error;
using shf::Members;
using shf::Options;

Options options_of(unsigned switches) {
    const auto allowed = [&](unsigned bit) {
        return (switches & bit) != 0 ? shf::Leniency::allow : shf::Leniency::refuse;
    };
    Options options;
    options.zip_prefix = allowed(1);
    options.zip_overlap = allowed(2);
    options.trailing = (switches & 4) != 0 ? shf::Trailing::ignore : shf::Trailing::refuse;
    options.on_error = shf::OnError::skip_sample;
    options.memory = 1 << 20;
    options.max_member = 64 << 10;
    options.max_window = 1 << 20;
    return options;
}

// The bytes of one member, or the class of its error.
struct Outcome {
    int32_t code = SHF_OK;
    std::vector<uint8_t> bytes;

    bool operator==(const Outcome&) const = default;
};

template <typename Read>
Outcome outcome_of(Read read) {
    Outcome outcome;
    try {
        outcome.bytes = read();
    } catch (const Error& error) {
        if (error.code() == SHF_E_INTERNAL || error.fault().member.size() > 5000) std::abort();
        outcome.code = error.code();
    }
    return outcome;
}

void check_member(const Members& members, size_t position, shf::ZipScratch& scratch) {
    const shf::MemberInfo info = members.info(position);
    const Outcome read = outcome_of([&] {
        // What is over the limit is refused before its memory is touched.
        std::vector<uint8_t> out(static_cast<size_t>(std::min<uint64_t>(info.size, 64 << 10)));
        members.read(position, {out.data(), static_cast<size_t>(info.size)}, scratch);
        return out;
    });
    if (read.code == SHF_OK &&
        (read.bytes.size() != info.size || shf::crc32(read.bytes) != info.crc))
        std::abort();
    if (info.method != 0) return;
    const Outcome view = outcome_of([&] {
        const auto bytes = members.view(position);
        return std::vector<uint8_t>(bytes.begin(), bytes.end());
    });
    if (!(view == read)) std::abort();
}

// All members in sequence; one that cannot be read leaves the next ones. Bytes have their CRC.
void read_members(shf::Source& source, const Options& options) {
    const shf::Cancel cancel;
    const auto walk = shf::zip_walk(source, options, cancel);
    std::array<uint8_t, 600> piece;
    while (walk->next()) {
        uint32_t crc = 0;
        uint64_t total = 0;
        try {
            while (const size_t size = walk->read(piece)) {
                crc = shf::crc32(std::span(piece).first(size), crc);
                total += size;
            }
            if (total != walk->member().size || crc != walk->number(SHF_MEMBER_CRC32)) std::abort();
        } catch (const Error& error) {
            if (!walk->survives(error.code())) throw;
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    const Options options = options_of(data[0]);
    const std::span<const uint8_t> file(data + 1, size - 1);
    const auto source = shf::memory_source(file);
    size_t readable = 0;
    try {
        const auto members = shf::zip_members(*source, file, options);
        shf::ZipScratch scratch;
        for (size_t i = 0; i < members->count(); ++i) check_member(*members, i, scratch);
        readable = members->count();
        read_members(*source, options);
        const shf::NameTable names(*members, shf::member_words);
        for (size_t i = 0; i < members->count(); ++i) try {
                if (names.find(members->name(i)) != i) std::abort();
            } catch (const Error& error) {
                if (error.code() != SHF_E_AMBIGUOUS) std::abort();
            }
    } catch (const Error& error) {
        if (error.code() == SHF_E_INTERNAL) std::abort();
    }
    const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
    const auto shard = shf::test::read_shard(bytes, options, {}, "fuzz.zip");
    if (shard.end.code == SHF_E_INTERNAL) std::abort();
    size_t fields = 0;
    for (const auto& sample : shard.samples) fields += sample.fields.size();
    // A tar under the name of a ZIP file is a tar.
    if (fields > readable && shf::has_zip_magic(file)) std::abort();
    return 0;
}

#ifdef SHF_LIBFUZZER
#include <random>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

uint32_t get(const uint8_t* at, size_t width) {
    uint32_t value = 0;
    for (size_t i = width; i-- > 0;) value = value << 8 | at[i];
    return value;
}
void put(uint8_t* at, size_t value, size_t width) {
    for (size_t i = 0; i < width; ++i, value >>= 8) at[i] = static_cast<uint8_t>(value);
}

// Makes the end record point at the directory, every entry at its local header, and both headers
// and the CRC alike, as far as the records are there.
void repair(uint8_t* file, size_t size, std::minstd_rand& random) {
    constexpr uint32_t local_magic = 0x04034b50, central_magic = 0x02014b50, end_magic = 0x06054b50;
    constexpr size_t local_size = 30, central_size = 46, end_size = 22;
    std::vector<size_t> locals, centrals;
    std::optional<size_t> end;
    for (size_t i = 0; i + end_size <= size; ++i) {
        const uint32_t magic = get(file + i, 4);
        if (magic == local_magic && i + local_size <= size && centrals.empty()) locals.push_back(i);
        if (magic == central_magic && i + central_size <= size) centrals.push_back(i);
        if (magic == end_magic) end = i;
    }
    if (!end || centrals.empty()) return;
    put(file + *end + 8, centrals.size(), 2);
    put(file + *end + 10, centrals.size(), 2);
    put(file + *end + 12, *end - centrals[0], 4);
    put(file + *end + 16, centrals[0], 4);
    put(file + *end + 20, size - *end - end_size, 2);
    for (size_t i = 0; i < std::min(locals.size(), centrals.size()); ++i) {
        uint8_t *local = file + locals[i], *central = file + centrals[i];
        if (random() % 8 == 0) continue;
        put(central + 42, locals[i], 4);
        const size_t next = i + 1 < locals.size() ? locals[i + 1] : centrals[0];
        const size_t data = locals[i] + local_size + get(local + 26, 2) + get(local + 28, 2);
        if (get(local + 8, 2) == 0 && data <= next && random() % 2 == 0) {
            put(local + 14, shf::crc32({file + data, next - data}), 4);
            put(local + 18, next - data, 4);
            put(local + 22, next - data, 4);
        }
        std::copy_n(local + 4, 24, central + 6);  // version to length of the name
        const size_t name = get(local + 26, 2);
        if (data <= size && centrals[i] + central_size + name <= size)
            std::copy_n(local + local_size, name, central + central_size);
    }
}

}  // namespace

// Most mutations would end at a wrong offset or CRC; most of those get it right again.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
    size = LLVMFuzzerMutate(data, size, max_size);
    std::minstd_rand random(seed);
    if (size > 1 && random() % 4 != 0) repair(data + 1, size - 1, random);
    return size;
}
#endif
