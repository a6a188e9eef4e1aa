#include "io/sources.h"

#include "core/error.h"
#include "core/options.h"
#include "core/source_functions.h"
#include "io/callback_source.h"
#include "io/descriptor.h"
#include "io/file.h"
#include "io/pipe.h"
#include "io/sink.h"
#include "url/in_shard.h"
#include "url/scheme.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace shf {

namespace {

std::unique_ptr<Source> open_file(const std::string& url, const SourceContext& context) {
    // An allocator of the program is there because bytes must lie in its memory.
    const bool mapped = context.options.map && !context.options.alloc;
    return file_source(path_of(url), context.cancel, context.options.pipe_timeout, mapped);
}

Identity stat_file(const std::string& url, const SourceContext& /*context*/) {
    return identity_of_file(path_of(url));
}

std::unique_ptr<Source> open_stdin(const std::string& /*url*/, const SourceContext& context) {
    return stdin_source(context.cancel);
}

std::unique_ptr<Source> open_pipe(const std::string& url, const SourceContext& context) {
    if (pipes_refused(context.options)) refuse_pipe();
    return pipe_source(url.substr(std::string_view("pipe:").size()), context.options,
                       context.cancel);
}

Identity stat_of_nothing(const std::string& /*url*/, const SourceContext& /*context*/) {
    throw Error(SHF_E_UNSUPPORTED, "only files have an index");
}

constexpr std::array own_schemes = {
    Scheme{"", open_file, stat_file, nullptr},
    Scheme{"file", open_file, stat_file, nullptr},
    Scheme{"-", open_stdin, stat_of_nothing, nullptr},
    Scheme{"pipe", open_pipe, stat_of_nothing, nullptr},
};

std::vector<const Scheme*>& added_schemes() {
    static std::vector<const Scheme*> schemes;
    return schemes;
}

ReadThrough& cache() {
    static ReadThrough functions{nullptr, nullptr};
    return functions;
}

// What fetches the shards of a scheme, for pipe:.
const char* fetcher_of(std::string_view scheme) {
    if (scheme == "s3") return "pipe:aws s3 cp URL -";
    if (scheme == "gs" || scheme == "gcs") return "pipe:gcloud storage cat URL, or gsutil cat";
    if (scheme == "az" || scheme == "abfs" || scheme == "abfss")
        return "pipe:azcopy cp HTTPS-URL --from-to BlobPipe";
    if (scheme == "hdfs") return "pipe:hdfs dfs -cat URL";
    if (scheme == "hf")
        return "pipe:cat $(hf download --quiet --repo-type dataset REPOSITORY FILE), where older "
               "versions have huggingface-cli for hf";
    if (scheme == "http" || scheme == "https" || scheme == "ftp" || scheme == "ftps")
        return "pipe:curl -fsSL URL";
    return "pipe:COMMAND";
}

// NULL: there is none.
const Scheme* look_up(std::string_view url, const Options& options) {
    const std::string name = scheme_of(url);
    for (const Scheme& scheme : own_schemes)
        if (scheme.name == name) return &scheme;
    const Scheme* found = nullptr;
    for (const Scheme* scheme : added_schemes()) {
        if (scheme->name != name) continue;
        if (scheme->takes && scheme->takes(url, options)) return scheme;
        if (!scheme->takes && !found) found = scheme;
    }
    return found;
}

bool is_own(const Scheme& scheme) {
    return &scheme >= own_schemes.data() && &scheme < own_schemes.data() + own_schemes.size();
}

const Scheme& find_scheme(const std::string& url, const Options& options) {
    if (url.empty()) throw Error(SHF_E_USAGE, "an empty URL", "give a path");
    if (url.find('\0') != url.npos)
        throw Error(SHF_E_USAGE, "a NUL byte in a URL", "look at where the URL was put together");
    if (const Scheme* const scheme = look_up(url, options)) return *scheme;
    const std::string name = scheme_of(url);
    throw Error(SHF_E_UNSUPPORTED, "this version reads no " + name + ":// URLs",
                std::string("let a program fetch the shard, as in ") + fetcher_of(name) +
                    ", or copy it to a local disk");
}

bool cached(const Scheme& scheme, const Options& options) {
    return !options.cache.empty() && cache().open && !is_own(scheme) && !scheme.is_messages;
}

}  // namespace

std::shared_ptr<const SourceFunctions> Sources::program_source(const std::string& url) const {
    if (context_.options.sources.empty() || url.find('\0') != url.npos) return nullptr;
    const std::string name = scheme_of(url);
    const auto is_it = [&](const Scheme& scheme) { return scheme.name == name; };
    if (std::any_of(own_schemes.begin(), own_schemes.end(), is_it)) return nullptr;
    return source_functions(context_.options, name);
}

std::unique_ptr<Source> Sources::open(const std::string& url) const {
    context_.cancel.check();
    if (auto functions = program_source(url))
        return callback_source(std::move(functions), url, context_.cancel);
    const Scheme& scheme = find_scheme(url, context_.options);
    if (cached(scheme, context_.options)) return cache().open(scheme, url, context_);
    return scheme.open(url, context_);
}

Identity Sources::stat(const std::string& url) const {
    if (auto functions = program_source(url))
        return callback_source(std::move(functions), url, context_.cancel)->identity();
    const Scheme& scheme = find_scheme(url, context_.options);
    if (cached(scheme, context_.options)) return cache().stat(scheme, url, context_);
    return scheme.stat(url, context_);
}

ShardList Sources::list(std::span<const char* const> urls) const {
    return {urls, context_.options,
            [this](const std::string& prefix) -> std::optional<std::vector<std::string>> {
                if (program_source(prefix)) return std::nullopt;  // which lists nothing
                const Scheme* const scheme = look_up(prefix, context_.options);
                if (!scheme || !scheme->list) return std::nullopt;
                return in_shard(prefix, [&] { return scheme->list(prefix, context_); });
            }};
}

SourceUse& Sources::uncounted() {
    static SourceUse use;
    return use;
}

const Scheme* Sources::scheme_for(std::string_view url, const Options& options) {
    return look_up(url, options);
}

void Sources::read_through(const ReadThrough& functions) {
    cache() = functions;
}

void Sources::add(const Scheme& scheme) {
    added_schemes().push_back(&scheme);
}

}  // namespace shf
