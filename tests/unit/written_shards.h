// What a writer of numbered samples has left, after it was stopped at any moment.
#pragma once

#include "writer_client.h"

#include <gtest/gtest.h>
#include <shardfeed.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace shf::test {

constexpr uint64_t numbered_samples = 60;  // of each shard

inline std::string numbered_payload(uint64_t number) {
    return std::string(200 + number * 7919 % 5000, static_cast<char>('a' + number % 26));
}

inline void write_numbered(WriterClient& client, uint64_t number) {
    client.write("k" + std::to_string(number), {{"txt", numbered_payload(number)}});
}

// Published shards are whole, and with the rest, up to where it was cut, have all samples that were
// acknowledged. `torn`: what was not acknowledged may have any bytes, in files without their name.
inline void check_numbered(const std::string& folder, uint64_t acknowledged, bool torn) {
    std::vector<std::string> shards, rest;
    for (const std::string& name : names_in(folder)) {
        if (name.ends_with(".tar"))
            shards.push_back(folder + "/" + name);
        else if (name.ends_with(".partial"))
            rest.push_back(folder + "/" + name);
    }
    uint64_t found = 0;
    for (const std::string& shard : shards) {
        const auto samples = samples_of({shard});  // or an error, which fails there
        ASSERT_EQ(samples.size(), numbered_samples) << shard;
        for (const std::string& sample : samples) {
            ASSERT_EQ(sample, "k" + std::to_string(found) + " txt=" + numbered_payload(found));
            ++found;
        }
    }
    // Of at most two shards: one was being published, the other one written. Their samples follow;
    // the last one may be cut.
    ASSERT_LE(rest.size(), 3U);
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (const std::string& part : rest) {
        shf_options* const options = shf_options_new();
        ASSERT_EQ(shf_options_set(options, "end_marker", "optional", nullptr), SHF_OK);
        shf_members* members = nullptr;
        ASSERT_EQ(shf_members_open(&members, part.c_str(), options, nullptr), SHF_OK);
        shf_options_free(options);
        uint64_t first = 0, count = 0;
        shf_bytes name;
        while (shf_members_next(members, &name, nullptr) == SHF_OK) {
            const std::string member = text_of(name);
            const uint64_t number = std::strtoull(member.c_str() + 1, nullptr, 10);
            std::string data, piece(8192, '\0');
            size_t size = 1;
            int32_t code = SHF_OK;
            while (code == SHF_OK && size > 0) {
                code = shf_members_read(members, piece.data(), piece.size(), &size, nullptr);
                data.append(piece, 0, size);
            }
            if (code != SHF_OK) break;  // cut
            if (member != "k" + std::to_string(number) + ".txt" ||
                (count > 0 && number != first + count) || data != numbered_payload(number)) {
                EXPECT_TRUE(torn) << member << " in " << part;
                break;
            }
            if (count == 0) first = number;
            ++count;
        }
        shf_members_close(members);
        if (count > 0) ranges.emplace_back(first, count);
    }
    std::sort(ranges.begin(), ranges.end());
    for (const auto& [first, count] : ranges)
        if (first <= found) found = std::max(found, first + count);
    ASSERT_GE(found, acknowledged);
}

}  // namespace shf::test
