#include "io/source.h"

#include "core/error.h"
#include "core/options.h"
#include "io/descriptor.h"
#include "io/file.h"
#include "io/pipe.h"

#include <algorithm>
#include <cctype>

namespace shf {

namespace {

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

// The scheme of "scheme://...", in lower case, or nothing (RFC 3986, 3.1).
std::string scheme_of(const std::string& url) {
    const size_t mark = url.find("://");
    if (mark == url.npos || mark == 0 || std::isalpha(static_cast<unsigned char>(url[0])) == 0)
        return {};
    std::string scheme = url.substr(0, mark);
    for (char& c : scheme) {
        if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '+' && c != '-' && c != '.')
            return {};
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return scheme;
}

}  // namespace

size_t Source::read_unverified(uint64_t offset, std::span<const std::span<uint8_t>> parts) {
    size_t done = 0;
    for (const std::span<uint8_t> part : parts) {
        const size_t size = part.empty() ? 0 : read(offset + done, part);
        done += size;
        if (size < part.size()) break;
    }
    return done;
}

bool is_local_path(const std::string& url) {
    return !url.empty() && url != "-" && !url.starts_with("pipe:") && !is_file_url(url) &&
           scheme_of(url).empty();
}

std::unique_ptr<Source> open_source(const std::string& url, const Options& options,
                                    const Cancel& cancel) {
    constexpr std::string_view pipe = "pipe:";
    cancel.check();
    if (url.empty()) throw Error(SHF_E_USAGE, "an empty URL", "give a path");
    if (url.find('\0') != url.npos) throw Error(SHF_E_USAGE, "a NUL byte in a URL");
    if (url == "-") return stdin_source(cancel);
    if (url.starts_with(pipe)) {
        if (pipes_refused(options)) refuse_pipe();
        return pipe_source(url.substr(pipe.size()), options, cancel);
    }
    if (is_file_url(url)) return file_source(path_of_file_url(url), cancel, options.pipe_timeout);
    if (const std::string scheme = scheme_of(url); !scheme.empty())
        throw Error(SHF_E_UNSUPPORTED, "this version reads no " + scheme + ":// URLs",
                    std::string("let a program fetch the shard, as in ") + fetcher_of(scheme) +
                        ", or copy it to a local disk");
    return file_source(url, cancel, options.pipe_timeout);
}

}  // namespace shf
