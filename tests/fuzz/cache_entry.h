// The entry of a cache that cache_fuzz and cache_corpus know.
#pragma once

#include "cache/cache_block.h"
#include "cache/cache_folder.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace shf::test {

inline constexpr const char* fuzz_version =
    "shards/0123456789abcdef0123456789abcdef/"
    "fedcba9876543210fedcba9876543210";

inline const CacheLabel& fuzz_label() {
    static const CacheLabel label{"test://host/a.tar", "\"1\"", 66000, 1};
    return label;
}

// Bytes that are no piece twice.
inline const std::string& fuzz_data() {
    static const std::string data = [] {
        std::string text;
        for (uint64_t i = 0; text.size() < fuzz_label().size; ++i) text += std::to_string(i * i);
        text.resize(static_cast<size_t>(fuzz_label().size));
        return text;
    }();
    return data;
}

// A cache in a folder of its own with that one block, until the end of the program.
class FuzzCache {
  public:
    FuzzCache() : path_(made()), folder(path_, 0, true) {
        folder.write_label(fuzz_version, fuzz_label());
        BlockWriter writer(folder, fuzz_version, fuzz_label(), 0);
        writer.add({reinterpret_cast<const uint8_t*>(fuzz_data().data()), fuzz_data().size()});
        if (writer.seal() != 0) std::abort();
    }
    ~FuzzCache() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    FuzzCache(const FuzzCache&) = delete;
    FuzzCache& operator=(const FuzzCache&) = delete;

    [[nodiscard]] std::string file(const char* name) const {
        return folder.path() + "/" + fuzz_version + "/" + name;
    }

  private:
    static std::string made() {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "shardfeed-XXXXXX").string();
        if (!::mkdtemp(pattern.data())) std::abort();
        return pattern;
    }
    std::string path_;

  public:
    CacheFolder folder;
};

inline std::string bytes_of_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace shf::test
