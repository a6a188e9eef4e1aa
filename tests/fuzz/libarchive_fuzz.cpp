// Fuzz target of what libarchive reads, and of the headers that are read before it: any bytes,
// small limits. Members read by position, backwards, and one after another are the same, and no way
// ends well where another one does not.
//
// The first byte holds the switches, so that a corpus file says how it is read: bit 0
// trailing=ignore.
#include "../unit/shard_driver.h"

#include "codec/other_archive.h"
#include "core/checksum.h"
#include "dataset/members.h"
#include "member/member_walk.h"

#include <array>
#include <cstdlib>
#include <optional>
#include <vector>

namespace {

using shf::Error;
using shf::Options;

constexpr uint64_t largest = 64 << 10;

Options options_of(unsigned switches) {
    Options options;
    options.trailing = (switches & 1) != 0 ? shf::Trailing::ignore : shf::Trailing::refuse;
    options.on_error = shf::OnError::skip_sample;
    options.memory = 1 << 20;
    options.max_member = largest;
    options.max_ratio = 100;
    return options;
}

using Data = std::optional<std::vector<uint8_t>>;  // nothing: it cannot be read

// Each member, the last one first.
std::vector<Data> read_backwards(const shf::Members& members) {
    std::vector<Data> all(members.count());
    shf::ZipScratch scratch;
    for (size_t i = members.count(); i-- > 0;) {
        const shf::MemberInfo info = members.info(i);
        if (info.size > largest) continue;
        std::vector<uint8_t> out(static_cast<size_t>(info.size));
        try {
            members.read(i, out, scratch);
            if (info.crc != UINT64_MAX && info.kind == shf::MemberKind::file &&
                shf::crc32(out) != info.crc)
                std::abort();
            all[i] = std::move(out);
        } catch (const Error& error) {
            if (error.code() == SHF_E_INTERNAL) std::abort();
        }
    }
    return all;
}

// The same in sequence. Throws Error when the archive cannot be read to its end.
std::vector<Data> read_forwards(shf::Source& source, const Options& options) {
    const shf::Cancel cancel;
    const auto walk = shf::libarchive_walk(source, options, cancel);
    std::vector<Data> all;
    std::array<uint8_t, 600> piece;
    while (walk->next()) {
        const uint64_t size = walk->member().size;
        std::vector<uint8_t> out;
        all.emplace_back();
        if (size > largest || shf::refusal(walk->member().kind)) continue;
        try {
            while (const size_t count = walk->read(piece)) {
                out.insert(out.end(), piece.begin(), piece.begin() + static_cast<ptrdiff_t>(count));
                if (out.size() > size) std::abort();
            }
            if (out.size() != size) std::abort();
            all.back() = std::move(out);
        } catch (const Error& error) {
            if (error.code() == SHF_E_INTERNAL) std::abort();
            if (!walk->survives(error.code())) throw;
        }
    }
    return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    const Options options = options_of(data[0]);
    const std::span<const uint8_t> file(data + 1, size - 1);
    const auto source = shf::memory_source(file);
    if (shf::other_archive(*source) == shf::OtherArchive::none) return 0;
    std::vector<Data> members, sequence;
    const shf::Cancel cancel;
    bool listed = false, walked = false;
    try {
        const auto list = shf::libarchive_members(*source, options, cancel);
        listed = true;
        members = read_backwards(*list);
        sequence = read_forwards(*source, options);
        walked = true;
    } catch (const Error& error) {
        if (error.code() == SHF_E_INTERNAL) std::abort();
    }
    // Reading a member may break off a sequence; a list that came to its end has all of them.
    if (walked && sequence != members) std::abort();
    const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
    const auto shard = shf::test::read_shard(bytes, options, {}, "fuzz");
    if (shard.end.code == SHF_E_INTERNAL) std::abort();
    if (shard.end.code == SHF_OK && !listed) std::abort();
    return 0;
}
