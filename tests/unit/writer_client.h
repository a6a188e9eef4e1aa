// A writer as a program in C sees it, and what its shards have.
#pragma once

#include "temp_shards.h"

#include <gtest/gtest.h>
#include <shardfeed.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shf::test {

using Fields = std::vector<std::pair<std::string, std::string>>;

class WriterClient {
  public:
    explicit WriterClient(const std::string& pattern, const Settings& settings = {}) {
        shf_options* options = shf_options_new();
        for (const auto& [name, value] : settings)
            EXPECT_EQ(shf_options_set(options, name.c_str(), value.c_str(), &error), SHF_OK)
                << error.message;
        code = shf_writer_open(&writer, pattern.c_str(), options, &error);
        shf_options_free(options);
    }
    ~WriterClient() { shf_writer_close(writer); }
    WriterClient(const WriterClient&) = delete;
    WriterClient& operator=(const WriterClient&) = delete;

    int32_t write(std::string_view key, const Fields& fields) {
        code = shf_writer_begin(writer, key.data(), key.size(), &error);
        for (const auto& [name, data] : fields)
            if (code == SHF_OK)
                code = shf_writer_field(writer, name.data(), name.size(), data.data(), data.size(),
                                        &error);
        if (code == SHF_OK) code = shf_writer_end(writer, &error);
        return code;
    }
    int32_t write_file(std::string_view key, std::string_view field, const std::string& path) {
        code = shf_writer_begin(writer, key.data(), key.size(), &error);
        if (code == SHF_OK)
            code = shf_writer_field_file(writer, field.data(), field.size(), path.c_str(), &error);
        if (code == SHF_OK) code = shf_writer_end(writer, &error);
        return code;
    }
    int32_t finish() { return code = shf_writer_finish(writer, &error); }
    [[nodiscard]] std::string message() const { return error.message; }
    [[nodiscard]] std::string shard(uint64_t index, int32_t what = SHF_SHARD_URL) const {
        shf_bytes text;
        return shf_writer_shard_text(writer, index, what, &text) == SHF_OK ? text_of(text) : "";
    }
    [[nodiscard]] uint64_t info(uint64_t index, int32_t what) const {
        return shf_writer_shard_info(writer, index, what);
    }

    shf_writer* writer = nullptr;
    shf_error error = {};
    int32_t code = SHF_OK;
};

inline std::string bytes_of_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    return std::move(bytes).str();
}

// Names in a folder, sorted.
inline std::vector<std::string> names_in(const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

// "KEY FIELD=DATA FIELD=DATA" of each sample, in the order of the shards.
inline std::vector<std::string> samples_of(const std::vector<std::string>& urls,
                                           const Settings& settings = {}) {
    Client client(urls, settings);
    std::vector<std::string> samples;
    while (const SampleHandle sample = client.next()) {
        std::string text = key_of(sample.get());
        for (size_t i = 0; i < shf_sample_field_count(sample.get()); ++i) {
            shf_bytes name, data;
            EXPECT_EQ(shf_sample_field(sample.get(), i, &name, &data), SHF_OK);
            text += " " + text_of(name) + "=" + text_of(data);
        }
        samples.push_back(std::move(text));
    }
    EXPECT_EQ(client.code, SHF_END) << client.error.message;
    return samples;
}

}  // namespace shf::test
