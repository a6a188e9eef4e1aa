// A loss of power while the cache is written: nothing was synchronised, so any page of any file may
// be as it was written, zeros, or of a file that had its place before; files may be shorter,
// absent, or still have the name of a file in the making. Whatever is found then, what is read is
// right.
#include "cache_client.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace shf;
using namespace shf::test;
namespace fs = std::filesystem;

constexpr uint64_t page = 4096;

// POWER_LOSS_STATES=5000 is the campaign.
int states() {
    const char* const wanted = std::getenv("POWER_LOSS_STATES");
    return wanted ? std::atoi(wanted) : 300;
}

// What an interrupted writing may leave of a file with these bytes.
std::string after_power_loss(const std::string& written, std::mt19937& random) {
    const auto below = [&](uint64_t most) {
        return std::uniform_int_distribution<uint64_t>(0, most - 1)(random);
    };
    std::string left = written;
    // Its length reaches the disk with its last pages: mostly at the border of one.
    if (below(4) == 0) left.resize(below(left.size() / page + 1) * page);
    if (below(16) == 0) left.resize(below(left.size() + 1));
    const uint64_t kind = below(4), pages = (left.size() + page - 1) / page;
    const uint64_t some = kind == 0 ? 1 : 1 + below(std::max<uint64_t>(pages, 1));
    for (uint64_t n = 0; n < some && pages > 0; ++n) {
        const uint64_t at = kind == 1 ? n : below(pages);  // the first ones, or any
        const uint64_t size = std::min(page, left.size() - at * page);
        const std::string old =
            below(2) == 0 ? std::string(size, '\0') : noise(size, below(1000)).substr(0, size);
        left.replace(at * page, size, old);
    }
    return left;
}

class CachePowerLoss : public CacheTest {
  protected:
    // A cache with all of some shards, as it is in memory before any of it is on the disk.
    void fill() {
        for (uint64_t n = 0; n < 3; ++n) {
            urls.push_back("test://host/" + std::to_string(n) + ".tar");
            serve(urls[n], 150001 + n * 40000, 40 + n);
            ASSERT_EQ(rest_of(*open(urls[n])), Server::get().shards[urls[n]].bytes);
        }
        for (const fs::path& file : files([](const std::string&) { return true; }))
            written.emplace_back(file, file_bytes(file));
        ASSERT_GE(written.size(), 7U);  // the tag, three labels and three blocks
    }

    std::vector<std::string> urls;
    std::vector<std::pair<fs::path, std::string>> written;
};

TEST_F(CachePowerLoss, nothing_wrong_is_served_after_it) {
    options.cache_size = uint64_t{64} << 20;
    fill();
    std::mt19937 random(17);
    uint64_t whole = 0, damaged = 0;
    for (int state = 0; state < states(); ++state) {
        const bool spared = random() % 8 == 0;
        for (const auto& [file, bytes] : written) {
            fs::create_directories(file.parent_path());
            // Without its tag the folder is not ours.
            const bool tag = file.filename() == "CACHEDIR.TAG";
            const uint64_t fate = tag || spared ? 5 : random() % 6;
            fs::remove(file);
            if (fate == 0) continue;
            if (fate == 1)
                write_file(file.string() + ".1.1.part", after_power_loss(bytes, random));
            else
                write_file(file, fate < 5 ? after_power_loss(bytes, random) : bytes);
        }
        use.cache_faults = 0;
        fetched();
        for (const std::string& url : urls) {
            const std::string& right = Server::get().shards[url].bytes;
            ASSERT_TRUE(rest_of(*open(url), 0, 70000) == right) << "state " << state << ", " << url;
            ASSERT_EQ(part_of(*open(url), 100000, 1000), right.substr(100000, 1000))
                << "state " << state;
        }
        damaged += use.cache_faults;
        if (fetched() == 0) ++whole;
        for (const fs::path& part : parts()) fs::remove(part);
    }
    // Both happen: what is damaged is found, and what is right is used.
    EXPECT_GT(damaged, static_cast<uint64_t>(states()) / 5);
    EXPECT_GT(whole, static_cast<uint64_t>(states()) / 20);
}

}  // namespace
