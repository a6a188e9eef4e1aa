#include "write/other_indexes.h"

#include "core/error.h"
#include "core/options.h"
#include "interop/dali_index.h"
#include "interop/energon_index.h"
#include "io/sink.h"
#include "io/source_context.h"
#include "url/redact.h"
#include "url/scheme.h"

#include <algorithm>
#include <filesystem>

namespace shf {

namespace {

bool is_on_disk(const std::string& url) {
    const std::string scheme = scheme_of(url);
    return scheme.empty() || scheme == "file";
}

std::filesystem::path normal_path(const std::string& url, const std::string& folder) {
    return (std::filesystem::path(folder) / path_of(url)).lexically_normal();
}

std::string wids_file(const Options& options, const std::string& folder) {
    if (options.wids_index.empty()) return {};
    if (!is_on_disk(options.wids_index))
        throw Error(SHF_E_USAGE, "wids_index: the index of wids is a file on a local disk",
                    "give a path");
    return normal_path(options.wids_index, folder).string();
}

// As wds2idx calls it.
std::string dali_url(const std::string& shard) {
    return shard.substr(0, shard.size() - 4) + ".idx";
}

std::string energon_url(const std::string& shard) {
    return shard + ".idx";
}

[[noreturn]] void rethrow_of_index(const Error& error, const std::string& url) {
    Fault fault = error.fault();
    fault.cause = "writing the index file \"" + escape(redact(url)) + "\": " + fault.cause;
    throw Error(std::move(fault));
}

}  // namespace

void publish_index(const ForeignIndex& index, const SourceContext& context) {
    try {
        const auto sink = open_sink(index.url, context);
        sink->write({reinterpret_cast<const uint8_t*>(index.bytes.data()), index.bytes.size()});
        sink->publish();
    } catch (const Error& error) {
        rethrow_of_index(error, index.url);
    }
}

OtherIndexes::OtherIndexes(const Options& options, const std::string& folder)
    : options_(options), wids_path_(wids_file(options, folder)) {
    std::string_view rest = options.index_for;
    while (!rest.empty()) {
        const std::string_view word = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(word.size() + 1, rest.size()));
        if (word == "dali")
            dali_ = true;
        else if (word == "energon")
            energon_ = true;
        else
            throw Error(SHF_E_USAGE, "index_for: \"" + escape(word) + "\" is no tool that is known",
                        "dali and energon are; wids_index makes the index of wids");
    }
}

void OtherIndexes::check(const std::string& name, bool zip, bool compressed_or_stream) const {
    if (!wanted()) return;
    const std::string option = dali_ || energon_ ? "index_for" : "wids_index";
    if (compressed_or_stream)
        throw Error(SHF_E_USAGE,
                    option + ": an index is of a file, which is not compressed as a whole",
                    "write .tar files, or no index");
    if ((dali_ || energon_) && (zip || !name.ends_with(".tar")))
        throw Error(SHF_E_USAGE, "index_for: the other tools read shards named .tar",
                    "give them such names");
    if (wids() && !is_on_disk(name))
        throw Error(SHF_E_USAGE, "wids_index: an index of wids is of shards on a local disk",
                    "write the shards to a disk, or leave it out");
}

void OtherIndexes::check_member(std::string_view name) const {
    if (!dali_) return;
    try {
        check_dali_name(name);
    } catch (const Error& error) {
        Fault fault = error.fault();
        fault.code = SHF_E_USAGE;
        fault.help = "give the sample another name, or leave dali out of index_for";
        throw Error(std::move(fault));
    }
}

void OtherIndexes::require_free(const std::string& url) const {
    if (options_.overwrite || !is_on_disk(url)) return;
    std::error_code none;
    if (std::filesystem::symlink_status(path_of(url), none).type() ==
        std::filesystem::file_type::not_found)
        return;
    rethrow_of_index(target_exists(), url);
}

std::string OtherIndexes::prepare(const std::string& target) const {
    if (dali_) require_free(dali_url(target));
    if (energon_) require_free(energon_url(target));
    if (!wids()) return {};
    require_free(wids_path_);
    const std::filesystem::path folder = std::filesystem::path(wids_path_).parent_path();
    return wids_url(normal_path(target, folder.string()), folder);
}

ForeignIndexes OtherIndexes::of_shard(const std::string& target,
                                      const std::optional<TarFiles>& files,
                                      uint64_t samples) const {
    ForeignIndexes made;
    if (dali_) made.files.push_back({dali_url(target), dali_index(*files, DaliVersion::v1_2)});
    if (energon_) made.files.push_back({energon_url(target), energon_index(*files)});
    if (wids()) made.wids_samples = files ? FileGroups(*files, split_wids_name).size() : samples;
    return made;
}

void OtherIndexes::note(const std::string& wids_url, uint64_t samples, uint64_t size) {
    if (wids()) shards_.push_back({.url = wids_url, .samples = samples, .size = size});
}

void OtherIndexes::publish(const Cancel& cancel) const {
    if (!wids() || shards_.empty()) return;
    SourceUse use;
    publish_index({wids_path_, wids_index(shards_)}, {options_, cancel, use});
}

}  // namespace shf
