// Shards in a temporary directory, and a stream over them as a program in C sees it.
#pragma once

#include "../sanitizers.h"
#include "tar_builder.h"

#include <gtest/gtest.h>
#include <shardfeed.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shf::test {

class TempDirectory {
  public:
    TempDirectory() {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "shardfeed-XXXXXX").string();
        if (!::mkdtemp(pattern.data())) throw std::filesystem::filesystem_error(pattern, {});
        path_ = pattern;
    }
    ~TempDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TempDirectory(const TempDirectory&) = delete;
    TempDirectory& operator=(const TempDirectory&) = delete;

    [[nodiscard]] std::string operator/(std::string_view name) const {
        return path_ + "/" + std::string(name);
    }
    void write(std::string_view name, std::string_view bytes) const {
        std::ofstream file(*this / name, std::ios::binary);
        file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        if (!file.flush()) throw std::filesystem::filesystem_error(std::string(name), {});
    }

  private:
    std::string path_;
};

// "s003-00042": the key of a sample tells its shard and its number there.
inline std::string sample_key(uint64_t shard, uint64_t number) {
    char text[64];
    std::snprintf(text, sizeof text, "s%03llu-%05llu", static_cast<unsigned long long>(shard),
                  static_cast<unsigned long long>(number));
    return text;
}

// One sample: the field "txt" holds the key and, up to `size` bytes, copies of it.
inline std::string sample_members(uint64_t shard, uint64_t number, size_t size = 0) {
    const std::string key = sample_key(shard, number);
    std::string text = key;
    while (text.size() < size) text += key.substr(0, size - text.size());
    return member(key + ".txt", text);
}

// A shard of `samples` samples with its end marker.
inline std::string shard_bytes(uint64_t shard, uint64_t samples, size_t size = 0) {
    std::string bytes;
    for (uint64_t i = 0; i < samples; ++i) bytes += sample_members(shard, i, size);
    return bytes + end_marker();
}

// Writes 000.tar, 001.tar, ... with so many samples each; their paths.
inline std::vector<std::string> write_shards(const TempDirectory& directory,
                                             const std::vector<uint64_t>& samples,
                                             size_t size = 0) {
    std::vector<std::string> paths;
    for (size_t s = 0; s < samples.size(); ++s) {
        char name[32];
        std::snprintf(name, sizeof name, "%03zu.tar", s);
        directory.write(name, shard_bytes(s, samples[s], size));
        paths.push_back(directory / name);
    }
    return paths;
}

using Settings = std::vector<std::pair<std::string, std::string>>;

inline Settings operator+(Settings a, const Settings& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

struct SampleUnref {
    void operator()(shf_sample* sample) const { shf_sample_unref(sample); }
};
using SampleHandle = std::unique_ptr<shf_sample, SampleUnref>;

inline std::string text_of(shf_bytes bytes) {
    return bytes.size == 0 ? std::string()
                           : std::string(reinterpret_cast<const char*>(bytes.data), bytes.size);
}
inline std::string key_of(const shf_sample* sample) {
    shf_bytes key;
    shf_sample_key(sample, &key);
    return text_of(key);
}
// The payload of a sample of ours begins with its key.
inline bool is_whole(const shf_sample* sample) {
    shf_bytes text;
    return shf_sample_find(sample, "txt", 3, &text) == SHF_OK &&
           text_of(text).starts_with(key_of(sample));
}

// An open stream and what it said last.
class Client {
  public:
    Client(const std::vector<std::string>& urls, const Settings& settings,
           const std::function<void(shf_options*)>& more = {}) {
        shf_options* options = shf_options_new();
        for (const auto& [name, value] : settings)
            EXPECT_EQ(shf_options_set(options, name.c_str(), value.c_str(), &error), SHF_OK)
                << error.message;
        if (more) more(options);
        std::vector<const char*> given;
        for (const std::string& url : urls) given.push_back(url.c_str());
        code = shf_stream_open(&stream, given.data(), given.size(), options, &error);
        shf_options_free(options);
    }
    Client(const std::string& url, const Settings& settings)
        : Client(std::vector<std::string>{url}, settings) {}
    virtual ~Client() { shf_stream_close(stream); }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    SampleHandle next() {
        shf_sample* sample = nullptr;
        code = shf_stream_next(stream, &sample, &error);
        return SampleHandle(sample);
    }
    // Keys until the end, an error (see code), or `most` samples; broken samples get a name that no
    // test expects.
    std::vector<std::string> keys(size_t most = SIZE_MAX) {
        std::vector<std::string> keys;
        while (keys.size() < most) {
            const SampleHandle sample = next();
            if (!sample) break;
            keys.push_back(is_whole(sample.get()) ? key_of(sample.get()) : "broken");
        }
        return keys;
    }
    // The same through next_block, `most` at a time.
    std::vector<std::string> block_keys(size_t at_once = 0) {
        std::vector<std::string> keys;
        shf_block* block = nullptr;
        while ((code = shf_stream_next_block(stream, at_once, &block, &error)) == SHF_OK) {
            for (size_t i = 0; i < shf_block_sample_count(block); ++i) {
                const shf_sample* sample = shf_block_sample(block, i);
                keys.push_back(is_whole(sample) ? key_of(sample) : "broken");
            }
            shf_block_unref(block);
        }
        return keys;
    }
    [[nodiscard]] uint64_t stat(int32_t number) const {
        const uint64_t value = shf_stream_stat(stream, number);
        EXPECT_NE(value, UINT64_MAX);
        return value;
    }
    // Skips with this error code.
    [[nodiscard]] uint64_t skips(int32_t code_of_skip) const {
        return stat(SHF_STAT_SKIPS_BY_CLASS + -code_of_skip);
    }
    [[nodiscard]] std::string message() const { return error.message; }

    shf_stream* stream = nullptr;
    shf_error error = {};
    int32_t code = SHF_OK;

  protected:
    Client() = default;
};

// Bytes of memory that are in RAM and belong to this process.
inline uint64_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    uint64_t pages = 0, resident = 0;
    statm >> pages >> resident;
    return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

// Ends the program with SIGALRM when a test waits for ever.
class Watchdog {
  public:
    explicit Watchdog(unsigned seconds) { ::alarm(seconds); }
    ~Watchdog() { ::alarm(0); }
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;
};

}  // namespace shf::test
