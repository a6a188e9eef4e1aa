// Shards of both formats in a temporary directory, and a dataset over them as a program in C sees
// it.
#pragma once

#include "temp_shards.h"

#include <zlib.h>

#include <algorithm>

namespace shf::test {

using NamedBytes = std::vector<std::pair<std::string, std::string>>;

inline std::string little_endian_of(uint64_t value, size_t width) {
    std::string out;
    for (size_t i = 0; i < width; ++i, value >>= 8) out += static_cast<char>(value & 255);
    return out;
}

// A ZIP file of stored members (APPNOTE.TXT 6.3.10, 4.3.7, 4.3.12 and 4.3.16).
inline std::string stored_zip(const NamedBytes& members) {
    std::string file, directory;
    for (const auto& [name, bytes] : members) {
        const auto crc = ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()),
                                 static_cast<uInt>(bytes.size()));
        const std::string shared = little_endian_of(20, 2) + zeros(4) + little_endian_of(0x21, 4) +
                                   little_endian_of(crc, 4) + little_endian_of(bytes.size(), 4) +
                                   little_endian_of(bytes.size(), 4) +
                                   little_endian_of(name.size(), 2) + zeros(2);
        directory += "PK\x01\x02" + little_endian_of(20, 2) + shared + zeros(10) +
                     little_endian_of(file.size(), 4) + name;
        file += "PK\x03\x04" + shared + name + bytes;
    }
    return file + directory + "PK\x05\x06" + zeros(4) + little_endian_of(members.size(), 2) +
           little_endian_of(members.size(), 2) + little_endian_of(directory.size(), 4) +
           little_endian_of(file.size(), 4) + zeros(2);
}

inline std::string tar_of_members(const NamedBytes& members) {
    std::string file;
    for (const auto& [name, bytes] : members) file += member(name, bytes);
    return file + end_marker();
}

// All that can be asked of a sample.
inline std::string description(const shf_sample* sample) {
    shf_bytes url;
    shf_sample_url(sample, &url);
    std::string out = key_of(sample) + " of " + text_of(url) + ", shard " +
                      std::to_string(shf_sample_info(sample, SHF_SAMPLE_SHARD)) + ", byte " +
                      std::to_string(shf_sample_info(sample, SHF_SAMPLE_OFFSET)) + ", epoch " +
                      std::to_string(shf_sample_info(sample, SHF_SAMPLE_EPOCH)) + ", lane " +
                      std::to_string(shf_sample_info(sample, SHF_SAMPLE_LANE));
    for (size_t i = 0; i < shf_sample_field_count(sample); ++i) {
        shf_bytes name, data, found;
        EXPECT_EQ(shf_sample_field(sample, i, &name, &data), SHF_OK);
        out += ", " + text_of(name) + "=" + text_of(data);
        EXPECT_EQ(
            shf_sample_find(sample, reinterpret_cast<const char*>(name.data), name.size, &found),
            SHF_OK);
        EXPECT_EQ(found.data, data.data);
    }
    return out;
}

// An open dataset and what it said last.
class Samples {
  public:
    explicit Samples(const std::vector<std::string>& urls, const Settings& settings = {}) {
        shf_options* options = shf_options_new();
        for (const auto& [name, value] : settings)
            EXPECT_EQ(shf_options_set(options, name.c_str(), value.c_str(), &error), SHF_OK)
                << error.message;
        std::vector<const char*> given;
        for (const std::string& url : urls) given.push_back(url.c_str());
        code = shf_dataset_open(&dataset, given.data(), given.size(), options, &error);
        shf_options_free(options);
    }
    explicit Samples(const std::string& url, const Settings& settings = {})
        : Samples(std::vector<std::string>{url}, settings) {}
    ~Samples() { shf_dataset_close(dataset); }
    Samples(const Samples&) = delete;
    Samples& operator=(const Samples&) = delete;

    [[nodiscard]] uint64_t count() const { return shf_dataset_sample_count(dataset); }
    SampleHandle get(uint64_t number) {
        shf_sample* sample = nullptr;
        code = shf_dataset_get(dataset, number, &sample, &error);
        EXPECT_EQ(code == SHF_OK, sample != nullptr);
        return SampleHandle(sample);
    }
    // Empty when it fails; see code.
    std::string text(uint64_t number) {
        const SampleHandle sample = get(number);
        return sample ? description(sample.get()) : std::string();
    }
    std::vector<std::string> texts(const std::vector<uint64_t>& numbers) {
        std::vector<shf_sample*> samples(numbers.size() + 1);
        code =
            shf_dataset_get_many(dataset, numbers.data(), numbers.size(), samples.data(), &error);
        std::vector<std::string> texts;
        for (size_t i = 0; i < numbers.size(); ++i) {
            EXPECT_EQ(code == SHF_OK, samples[i] != nullptr);
            if (samples[i]) texts.push_back(description(samples[i]));
            shf_sample_unref(samples[i]);
        }
        return texts;
    }
    // The number of the sample with this key, UINT64_MAX when there is none; see code.
    uint64_t find(std::string_view key) {
        uint64_t number = 0;
        code = shf_dataset_find(dataset, key.data(), key.size(), &number, &error);
        return code == SHF_OK ? number : UINT64_MAX;
    }
    [[nodiscard]] std::string message() const { return error.message; }

    shf_dataset* dataset = nullptr;
    shf_error error = {};
    int32_t code = SHF_OK;
};

}  // namespace shf::test
