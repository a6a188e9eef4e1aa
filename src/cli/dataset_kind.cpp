#include "cli/dataset_kind.h"

#include "cli/json_report.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace cli {

namespace fs = std::filesystem;

namespace {

struct KindSuffix {
    std::string_view suffix;
    const char* kind;
};
constexpr std::array kind_suffixes = {
    KindSuffix{".parquet", "parquet"},    KindSuffix{".lmdb", "lmdb"},
    KindSuffix{".mdb", "lmdb"},           KindSuffix{".mds", "mds"},
    KindSuffix{".litdata", "litdata"},    KindSuffix{".tfrecord", "tfrecord"},
    KindSuffix{".tfrecords", "tfrecord"}, KindSuffix{".h5", "hdf5"},
    KindSuffix{".hdf5", "hdf5"},
};

std::string kind_of_name(const std::string& url) {
    std::string name = fs::path(url).filename().string();
    // train.tfrecord-00001-of-00010
    if (name.find(".tfrecord-") != std::string::npos) return "tfrecord";
    if (name.find(".tfrecord") != std::string::npos && name.ends_with(".gz"))
        name.resize(name.size() - 3);
    for (const auto& [suffix, kind] : kind_suffixes)
        if (name.ends_with(suffix)) return kind;
    return "shards";
}

// MDS and litdata have an index.json, which lists shards or chunks.
std::string kind_of_index(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    const Json index = Json::parse(file, nullptr, false);
    if (index.is_object() && index.contains("shards")) return "mds";
    if (index.is_object() && index.contains("chunks")) return "litdata";
    return {};
}

bool has_parquet(const fs::path& folder) {
    std::error_code error;
    fs::recursive_directory_iterator walk(folder, error);
    for (; !error && walk != fs::recursive_directory_iterator(); walk.increment(error))
        if (walk->path().extension() == ".parquet") return true;
    return false;
}

}  // namespace

const std::vector<std::string>& dataset_kinds() {
    static const std::vector<std::string> kinds = {"shards", "folder",  "parquet",  "lmdb",
                                                   "mds",    "litdata", "tfrecord", "hdf5"};
    return kinds;
}

std::string kind_of_input(const std::string& url) {
    std::error_code error;
    const fs::path path(url);
    if (!fs::is_directory(path, error)) return kind_of_name(url);
    if (fs::exists(path / "data.mdb", error)) return "lmdb";
    if (fs::exists(path / "index.json", error))
        if (const std::string kind = kind_of_index(path / "index.json"); !kind.empty()) return kind;
    return has_parquet(path) ? "parquet" : "folder";
}

std::string kind_of_output(const std::string& url) {
    return url.ends_with('/') ? "folder" : kind_of_name(url);
}

}  // namespace cli
