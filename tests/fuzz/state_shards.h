// The shards that the streams of state_fuzz read, and how a stream over them is opened.
#pragma once

#include "../unit/tar_builder.h"
#include "../unit/zip_builder.h"

#include "dataset/dataset.h"
#include "order/stream_state.h"
#include "stream/stream.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace shf::test {

// Three tars, one of them with a bad sample, and a ZIP file, in a temporary folder. Everything that
// a state knows of a shard is always the same: its name, its size and when it was changed.
class StateShards {
  public:
    StateShards() {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "shardfeed-state-XXXXXX").string();
        if (!::mkdtemp(pattern.data())) throw std::filesystem::filesystem_error(pattern, {});
        folder_ = pattern;
        write(paths_, "0.tar", tar(0, 9, 9));
        write(paths_, "1.tar", tar(1, 14, 5));
        write(paths_, "2.zip", zip(2, 6));
        write(paths_, "3.tar", tar(3, 300, 300));  // more than one resume point
        write(indexed_paths_, "4.tar", tar(4, 9, 9));
        write(indexed_paths_, "5.tar", tar(5, 40, 40));
        const Dataset makes_indexes(urls(true), Options());
    }
    ~StateShards() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    StateShards(const StateShards&) = delete;
    StateShards& operator=(const StateShards&) = delete;

    // Theirs, as long as these shards are there; or of two others, which have indexes.
    [[nodiscard]] std::vector<const char*> urls(bool indexed = false) const {
        std::vector<const char*> urls;
        for (const std::string& path : indexed ? indexed_paths_ : paths_)
            urls.push_back(path.c_str());
        return urls;
    }
    [[nodiscard]] std::unique_ptr<Stream> open(const Options& options) const {
        return std::make_unique<Stream>(urls(options.by_index), options);
    }
    // Whether a stream may deliver this.
    [[nodiscard]] bool has(const Block& block, uint32_t index) const {
        const std::string key(block.key_of(index));
        const uint64_t fields = block.first_field[index + 1] - block.first_field[index];
        if (fields == 0) return false;
        for (size_t i = 0; i < fields; ++i) {
            const FieldView field = block.field_of(index, i);
            const auto place = truth_.find(key + "." + std::string(field.name));
            if (place == truth_.end() ||
                place->second !=
                    std::string_view(reinterpret_cast<const char*>(field.data), field.size))
                return false;
        }
        return true;
    }

  private:
    void write(std::vector<std::string>& paths, const std::string& name,
               const std::string& bytes) const {
        paths.push_back(folder_ + "/" + name);
        {
            std::ofstream file(paths.back(), std::ios::binary);
            file << bytes;
            if (!file.flush()) throw std::filesystem::filesystem_error(paths.back(), {});
        }
        const timespec times[2] = {{.tv_sec = 1700000000, .tv_nsec = 0},
                                   {.tv_sec = 1700000000, .tv_nsec = 0}};
        if (::utimensat(AT_FDCWD, paths.back().c_str(), times, 0) != 0)
            throw std::filesystem::filesystem_error(paths.back(), {});
    }
    std::pair<std::string, std::string> field(size_t shard, size_t number, const char* suffix) {
        const std::string name = numbered("s", shard) + "-" + std::to_string(number) + "." + suffix;
        const std::string text = name + std::string(number % 7 * 100, 'x');
        truth_[name] = text;
        return {name, text};
    }
    // Sample `bad` has a field twice.
    std::string tar(size_t shard, size_t samples, size_t bad) {
        std::string bytes;
        for (size_t i = 0; i < samples; ++i)
            for (const char* suffix : {"cls", i == bad ? "cls" : "txt"}) {
                const auto [name, text] = field(shard, i, suffix);
                bytes += member(name, text);
            }
        return bytes + end_marker();
    }
    std::string zip(size_t shard, size_t samples) {
        Zip archive;
        for (size_t i = 0; i < samples; ++i) {
            Entry entry;
            std::tie(entry.name, entry.data) = field(shard, i, "txt");
            archive.entries.push_back(entry);
        }
        return archive.bytes();
    }

    std::string folder_;
    std::vector<std::string> paths_, indexed_paths_;
    std::map<std::string, std::string> truth_;
};

// What every stream of state_fuzz has in common; the order options come from the state.
inline Options state_fuzz_options() {
    Options options;
    options.set("epochs", "3");
    options.set("on_error", "skip_sample");
    options.set("memory", "1MiB");
    options.set("threads", "1");
    options.set("timeout", "20s");
    return options;
}

}  // namespace shf::test
