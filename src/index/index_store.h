// Where index files are kept, and when one is believed.
#pragma once

#include "index/shard_index.h"

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shf {

class Cancel;
class ShardList;
struct Options;

// The index of the plain tar at `url`, which `source` has open: read from its file when that is of
// this very shard; or, of a shard in an object store, from the object that a writer has put beside
// it, and saved; else made again and saved, as the option `index` says. What is done, and what
// was wrong with a file that is there, is logged. Throws Error: as index_tar, and with
// index=require NOT_FOUND, CHANGED, USAGE, FORMAT, INTEGRITY, UNSUPPORTED.
std::shared_ptr<const ShardIndex> open_index(const std::string& url, Source& source,
                                             const Options& options, const Cancel& cancel);

// The index of the shard at `url` that is there already, when it is of this very shard, which
// `source` has open, and good; else NULL. Makes nothing, logs nothing.
std::shared_ptr<const ShardIndex> find_index(const std::string& url, Source& source,
                                             const Options& options);

// Of a compressed shard, where its decompression can start, as find_index() has it; NULL for a
// plain one. Reads nothing of the shard where no file looks like its index.
std::shared_ptr<const DecodePoints> find_points(const std::string& url, Source& source,
                                                const Options& options);

// Whether there is one of a plain tar, whose samples can be read one by one, as far as size and
// modification time tell. Opens no shard.
bool has_index(const std::string& url, const Options& options);

// The samples of the shard, as far as size and modification time tell that an index is there; it is
// not read whole. Opens no shard.
std::optional<uint64_t> indexed_samples(const std::string& url, const Options& options);

// How many samples and bytes each shard of a list has, by number, as the index files say that are
// there; or, when not all are known, why.
struct IndexedSizes {
    std::vector<uint64_t> samples, bytes;
    std::string unknown;       // "a.tar: the shard has no index"; empty when all are known
    bool needs_index = false;  // a good index of that shard would tell
};

// Opens no shard: an index is taken for that of a shard of the same size and modification time.
// Looks at no more than a few thousand shards, and stops at the first one that is not known. Makes
// nothing.
IndexedSizes indexed_sizes(const ShardList& shards, const Options& options);

// Saves an index where open_index looks for it. Returns the path of the file. Throws Error when it
// could not be saved anywhere.
std::string store_index(const std::string& url, const ShardIndex& index, const Options& options);

// Makes the index of the shard at `url` and saves it. Returns the path of the file. Throws Error;
// IO when it could not be saved anywhere.
std::string build_index(const std::string& url, const Options& options, const Cancel& cancel);

// Writes a file whole or not at all: under another name first. Returns an error number.
int publish(const std::filesystem::path& path, std::span<const uint8_t> bytes, mode_t mode = 0666);

}  // namespace shf
