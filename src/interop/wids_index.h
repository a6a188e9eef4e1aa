// The JSON index of wids (webdataset up to 0.2): a list of shards with their numbers of samples.
//   {"wids_version": 1, "__kind__": "wids-shard-index-v1", "shardlist":
//    [{"url": "a.tar", "nsamples": 100, "filesize": 10240}, ...]}
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

struct WidsShard {
    std::string url;
    uint64_t samples = 0;
    std::optional<uint64_t> size = {};  // bytes
};

// The text of an index.
std::string wids_index(std::span<const WidsShard> shards);

// The shards of an index; their URLs as they are written there. Throws Error (FORMAT, UNSUPPORTED).
std::vector<WidsShard> read_wids_index(std::string_view json);

// How an index in `folder` names the file `path`, both absolute: relative where the file is in the
// folder. Throws Error (UNSUPPORTED) for a name that wids would read as another one.
std::string wids_url(const std::filesystem::path& path, const std::filesystem::path& folder);

// The file that a URL in an index means, which lies in `folder`. Throws Error: USAGE for a pipe,
// UNSUPPORTED for what is not a local file.
std::filesystem::path wids_path(const std::string& url, const std::filesystem::path& folder);

}  // namespace shf
