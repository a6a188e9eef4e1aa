#include "interop/energon_index.h"

#include "core/error.h"
#include "core/little_endian.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace shf {

namespace {

constexpr size_t width = sizeof(uint64_t);
constexpr const char* energon_help = "make the index again from this shard";

uint64_t number_at(std::string_view bytes, size_t i) {
    return little_endian<uint64_t>(reinterpret_cast<const uint8_t*>(bytes.data()) + i * width);
}

// The first number that differs, and what is wrong with it.
struct EnergonDifference {
    size_t number;
    Error error;
};

std::optional<EnergonDifference> compare(std::string_view bytes, const TarFiles& files,
                                         const FileGroups& groups) {
    const size_t samples = bytes.size() / width - 1;
    for (size_t i = 0; i < std::min(samples, groups.size()); ++i) {
        const uint64_t claimed = number_at(bytes, i), starts = files[groups[i][0]].header;
        if (claimed != starts)
            return EnergonDifference{
                i,
                Error(SHF_E_FORMAT,
                      "sample " + std::to_string(i) + " starts at byte " + std::to_string(claimed) +
                          " in the index, and at byte " + std::to_string(starts) + " in the shard",
                      energon_help)};
    }
    if (samples != groups.size())
        return EnergonDifference{std::min(samples, groups.size()),
                                 Error(SHF_E_CHANGED,
                                       "the index has " + plural(samples, "sample") +
                                           ", the shard " + std::to_string(groups.size()),
                                       energon_help)};
    if (const uint64_t end = number_at(bytes, samples); end != files.end())
        return EnergonDifference{samples, Error(SHF_E_CHANGED,
                                                "the shard ends at byte " + std::to_string(end) +
                                                    " in the index, and at byte " +
                                                    std::to_string(files.end()) + " in truth",
                                                energon_help)};
    return std::nullopt;
}

}  // namespace

std::string energon_index(const TarFiles& files) {
    const FileGroups groups(files, split_energon_name);
    if (groups.size() == 0)
        throw Error(SHF_E_UNSUPPORTED, "Energon has no index of a shard without samples",
                    "leave the shard out");
    std::string bytes;
    bytes.reserve((groups.size() + 1) * width);
    const auto add = [&bytes](uint64_t number) {
        for (size_t i = 0; i < width; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xff);
    };
    for (size_t i = 0; i < groups.size(); ++i) add(files[groups[i][0]].header);
    add(files.end());
    return bytes;
}

void check_energon_index(std::string_view bytes, const TarFiles& files) {
    if (bytes.size() < 2 * width || bytes.size() % width != 0)
        throw Error(SHF_E_FORMAT,
                    "an index of " + plural(bytes.size(), "byte") +
                        ", which is not a number of 8 bytes for each sample and the end",
                    energon_help);
    const auto theirs = compare(bytes, files, FileGroups(files, split_energon_name));
    if (!theirs) return;
    const auto ours = compare(bytes, files, FileGroups(files, split_name));
    if (ours) throw Error(ours->number > theirs->number ? ours->error : theirs->error);
}

}  // namespace shf
