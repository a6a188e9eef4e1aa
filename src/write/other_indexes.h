// Index files of other tools, as by-products of a writer (options index_for and wids_index).
#pragma once

#include "interop/foreign_samples.h"
#include "interop/wids_index.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

class Cancel;
struct Options;
struct SourceContext;

struct ForeignIndex {
    std::string url;
    std::string bytes;
};

// What goes with one shard.
struct ForeignIndexes {
    std::vector<ForeignIndex> files;
    uint64_t wids_samples = 0;  // as wids counts them
};

// Writes it. Throws Error.
void publish_index(const ForeignIndex& index, const SourceContext& context);

class OtherIndexes {
  public:
    // `options` must outlive it; `folder` is where a relative path starts. Throws Error(USAGE).
    OtherIndexes(const Options& options, const std::string& folder);

    // Whether the members of a tar have to be known.
    [[nodiscard]] bool wanted() const { return dali_ || energon_ || wids(); }
    // Throws Error(USAGE) for a shard, of which `name` is the URL, that has no such index.
    void check(const std::string& name, bool zip, bool compressed_or_stream) const;
    // Throws Error(USAGE) for a name that an index cannot hold.
    void check_member(std::string_view name) const;
    // Before a shard is written to `target`, an absolute URL: how the index of wids calls it.
    // Throws Error, IO when a file has the name of an index, and nothing is to be overwritten.
    [[nodiscard]] std::string prepare(const std::string& target) const;
    // The indexes of a whole shard; `files` of a tar. Throws Error.
    [[nodiscard]] ForeignIndexes of_shard(const std::string& target,
                                          const std::optional<TarFiles>& files,
                                          uint64_t samples) const;
    // Adds a shard to the index of wids.
    void note(const std::string& wids_url, uint64_t samples, uint64_t size);
    // Writes the index of wids, if one is wanted and there are shards. Throws Error.
    void publish(const Cancel& cancel) const;

  private:
    [[nodiscard]] bool wids() const { return !wids_path_.empty(); }
    void require_free(const std::string& url) const;

    const Options& options_;
    const std::string wids_path_;  // absolute; empty: none
    bool dali_ = false, energon_ = false;
    std::vector<WidsShard> shards_;
};

}  // namespace shf
