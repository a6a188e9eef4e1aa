// Writes index files of other tools, and takes them over: an index of ours is made by walking the
// shard, and saved when the foreign file says the same.
//
// A file that is written is the one that the other tool would write, where that would be right. It
// sees other samples than shardfeed in shards with hidden files, files without a dot, or metadata;
// a file that is read may have the samples as either of the two sees them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace shf {

struct Options;

// As SHF_INDEX_*.
enum class IndexFormat : uint8_t { dali_1_0, dali_1_1, dali_1_2, energon, wids };

// Writes the index of the shards that `urls` expand to into the file `path`. Throws Error.
void export_index(std::span<const char* const> urls, IndexFormat format, const std::string& path,
                  const Options& options);

// Compares the index in the file `path` with its shards, and saves theirs: the one that `url`
// expands to, or those that an index of wids names, for which there is no `url`. Throws Error:
// FORMAT and CHANGED with what differs.
void import_index(std::span<const char* const> url, IndexFormat format, const std::string& path,
                  const Options& options);

}  // namespace shf
