// The home of opening: what opens and looks at a shard is found by the scheme of its URL.
#pragma once

#include "io/source.h"
#include "io/source_context.h"
#include "io/urls.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shf {

class Sink;
struct PreparedFile;
class SourceFunctions;

// What serves the URLs of a scheme. Both get an expanded URL, and throw Error without the name of
// the shard.
struct Scheme {
    std::string_view name;  // "s3" of "s3://...", as scheme_of() gives it
    std::unique_ptr<Source> (*open)(const std::string& url, const SourceContext& context);
    // The version that is there now, without opening it.
    Identity (*stat)(const std::string& url, const SourceContext& context);
    // The URLs of all objects that begin with `prefix`, a URL of this scheme, in the order of their
    // bytes. NULL: there are no lists.
    std::vector<std::string> (*list)(const std::string& prefix, const SourceContext& context);
    // Of a store whose URLs are of a scheme that others have too, as "https": whether this one is
    // its own. NULL: all are.
    bool (*takes)(std::string_view url, const Options& options) = nullptr;
    // Where a new shard of this name is written to. NULL: nothing can be written.
    std::unique_ptr<Sink> (*write)(const std::string& url, const SourceContext& context) = nullptr;
    // What publish_prepared(), discard_prepared() and discard_left() do here (prepared_file.h).
    // NULL where nothing can be written.
    void (*publish)(const PreparedFile& file, const SourceContext& context) = nullptr;
    void (*discard)(const PreparedFile& file, const SourceContext& context) = nullptr;
    void (*discard_left)(const std::string& pattern, const SourceContext& context) = nullptr;
    // Its shards are messages of samples (sample/sample_message.h): what was read is gone, and each
    // write to a sink is one message.
    bool is_messages = false;
};

// What stands between Sources and the schemes that were added, under the option `cache`.
struct ReadThrough {
    std::unique_ptr<Source> (*open)(const Scheme& scheme, const std::string& url,
                                    const SourceContext& context);
    Identity (*stat)(const Scheme& scheme, const std::string& url, const SourceContext& context);
};

// Opens, looks at and lists the shards of a stream, a dataset or an archive, which owns it. Does
// not change: any number of threads.
class Sources {
  public:
    // The references must outlive it and what it opens. `cancel` ends any wait.
    Sources(const Options& options, const Cancel& cancel, SourceUse& use = uncounted())
        : context_{options, cancel, use} {}

    // Opens the shard that `url` names (see "URLs" in shardfeed.h; already expanded). Throws Error
    // without shard name (the caller adds it).
    [[nodiscard]] std::unique_ptr<Source> open(const std::string& url) const;
    // What is there now, without opening it. Throws Error; UNSUPPORTED for what has no identity
    // before it is read, such as a pipe.
    [[nodiscard]] Identity stat(const std::string& url) const;
    // The shards that these URLs mean.
    [[nodiscard]] ShardList list(std::span<const char* const> urls) const;

    // Adds a scheme, for all that is opened from now on in this process. `scheme` must live as
    // long. Before other threads open anything.
    static void add(const Scheme& scheme);
    // The same of what stands before all added schemes.
    static void read_through(const ReadThrough& cache);
    // Who of those serves this URL; NULL: nobody.
    static const Scheme* scheme_for(std::string_view url, const Options& options);

  private:
    // What of the program serves this URL; NULL: nothing.
    [[nodiscard]] std::shared_ptr<const SourceFunctions> program_source(
        const std::string& url) const;
    // Of whom nobody asks.
    static SourceUse& uncounted();

    const SourceContext context_;
};

}  // namespace shf
