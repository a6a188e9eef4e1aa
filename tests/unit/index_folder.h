// A folder with shards and the index files of other tools, as a program in C sees them.
#pragma once

#include "temp_shards.h"

#include <gtest/gtest.h>
#include <shardfeed.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace shf::test {

struct Outcome {
    int32_t code = SHF_OK;
    std::string message = {};
};

inline std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
    return out << shf_error_name(outcome.code) << " " << outcome.message;
}

// Expects a failure whose message has each of the words.
inline void expect_refused(const Outcome& outcome, int32_t code,
                           const std::vector<std::string>& words = {}) {
    EXPECT_STREQ(shf_error_name(outcome.code), shf_error_name(code)) << outcome.message;
    for (const std::string& word : words)
        EXPECT_NE(outcome.message.find(word), std::string::npos)
            << "no \"" << word << "\" in: " << outcome.message;
}

class IndexFolder : public TempDirectory {
  public:
    [[nodiscard]] Outcome write_index(const std::vector<std::string>& shards, int32_t format,
                                      std::string_view name, const Settings& settings = {}) const {
        std::vector<std::string> urls;
        for (const std::string& shard : shards) urls.push_back(*this / shard);
        std::vector<const char*> given;
        for (const std::string& url : urls) given.push_back(url.c_str());
        return run(settings, [&](const shf_options* options, shf_error* error) {
            return shf_index_export(given.data(), given.size(), format, (*this / name).c_str(),
                                    options, error);
        });
    }
    // No name of a shard: NULL.
    [[nodiscard]] Outcome read_index(std::string_view shard, int32_t format, std::string_view name,
                                     const Settings& settings = {}) const {
        return run(settings, [&](const shf_options* options, shf_error* error) {
            return shf_index_import(shard.empty() ? nullptr : (*this / shard).c_str(), format,
                                    (*this / name).c_str(), options, error);
        });
    }
    // The same with these bytes as the index.
    [[nodiscard]] Outcome read_bytes(std::string_view shard, int32_t format, std::string_view bytes,
                                     const Settings& settings = {}) const {
        write("given.idx", bytes);
        return read_index(shard, format, "given.idx", settings);
    }

    [[nodiscard]] std::string bytes_of(std::string_view name) const {
        std::ifstream file(*this / name, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    [[nodiscard]] bool has(std::string_view name) const {
        return std::filesystem::exists(*this / name);
    }
    void remove(std::string_view name) const { std::filesystem::remove(*this / name); }
    // What is in the folder itself.
    [[nodiscard]] size_t count() const {
        const std::filesystem::directory_iterator entries(*this / "");
        return static_cast<size_t>(std::distance(begin(entries), end(entries)));
    }

    // The index that shf_index_build makes of a shard.
    [[nodiscard]] std::string built(std::string_view shard, const Settings& settings = {}) const {
        const Outcome outcome = run(settings, [&](const shf_options* options, shf_error* error) {
            return shf_index_build((*this / shard).c_str(), options, error);
        });
        EXPECT_EQ(outcome.code, SHF_OK) << outcome.message;
        const std::string name = std::string(shard) + ".sfidx";
        std::string bytes = bytes_of(name);
        remove(name);
        return bytes;
    }

    // Imports `index` damaged in many ways: each is refused, and then nothing is saved, or gives
    // the index of this very shard.
    void expect_no_damage(const std::string& shard, int32_t format, std::string_view index) const {
        const std::string right = built(shard), saved = shard + ".sfidx";
        const auto expect_error_or_same = [&](std::string_view bytes, const std::string& what) {
            const Outcome outcome = read_bytes(shard, format, bytes);
            if (outcome.code == SHF_OK) {
                EXPECT_EQ(bytes_of(saved), right) << what;
            } else {
                EXPECT_FALSE(has(saved)) << what << ": " << outcome;
                EXPECT_TRUE(outcome.code == SHF_E_FORMAT || outcome.code == SHF_E_CHANGED ||
                            outcome.code == SHF_E_UNSUPPORTED)
                    << what << ": " << outcome;
            }
            remove(saved);
        };
        for (size_t size = 0; size < index.size(); ++size)
            expect_error_or_same(index.substr(0, size), numbered("cut to ", size));
        for (size_t i = 0; i < index.size(); ++i) {
            for (const char c : {'\0', '\1', ' ', '\n', '0', '9', 'a', '"', '\xff'}) {
                std::string damaged(index);
                damaged[i] = c;
                expect_error_or_same(damaged, numbered("byte ", i) + " is " + c);
            }
            std::string longer(index), shorter(index);
            expect_error_or_same(longer.insert(i, 1, index[i]), numbered("twice byte ", i));
            expect_error_or_same(shorter.erase(i, 1), numbered("without byte ", i));
        }
    }

  private:
    template <typename Call>
    static Outcome run(const Settings& settings, Call call) {
        shf_options* options = shf_options_new();
        shf_error error = {};
        for (const auto& [name, value] : settings)
            EXPECT_EQ(shf_options_set(options, name.c_str(), value.c_str(), &error), SHF_OK)
                << error.message;
        Outcome outcome;
        outcome.code = call(options, &error);
        if (outcome.code != SHF_OK) outcome.message = error.message;
        shf_options_free(options);
        return outcome;
    }
};

// The keys of the samples of a dataset that takes indexes as they are.
inline std::vector<std::string> indexed_keys(const std::string& url) {
    std::vector<std::string> keys;
    shf_options* options = shf_options_new();
    shf_error error = {};
    EXPECT_EQ(shf_options_set(options, "index", "require", &error), SHF_OK);
    shf_dataset* dataset = nullptr;
    const char* urls[] = {url.c_str()};
    EXPECT_EQ(shf_dataset_open(&dataset, urls, 1, options, &error), SHF_OK) << error.message;
    for (uint64_t i = 0; i < shf_dataset_sample_count(dataset); ++i) {
        shf_sample* sample = nullptr;
        EXPECT_EQ(shf_dataset_get(dataset, i, &sample, &error), SHF_OK) << error.message;
        if (sample) keys.push_back(key_of(sample));
        shf_sample_unref(sample);
    }
    shf_dataset_close(dataset);
    shf_options_free(options);
    return keys;
}

}  // namespace shf::test
