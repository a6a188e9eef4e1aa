#include "io/sink.h"

#include "io/file_sink.h"
#include "io/pipe.h"
#include "io/sources.h"
#include "url/scheme.h"

#include <cerrno>

namespace shf {

void Sink::cut(uint64_t /*size*/) {
    throw Error(SHF_E_INTERNAL, "this cannot be cut");
}

PreparedFile Sink::prepare() {
    throw Error(SHF_E_USAGE, "prepare: a stream is there as soon as it is written",
                "write to a path or to a store");
}

Error target_exists() {
    Fault fault = Error::system("the target is there already", EEXIST).fault();
    fault.cause = "it is there already, and nothing is overwritten";
    fault.help = "remove it, give another name, or set overwrite=true";
    return Error(fault);
}

std::unique_ptr<Sink> open_sink(const std::string& url, const SourceContext& context) {
    const std::string scheme = scheme_of(url);
    if (scheme == "-") return stdout_sink(context.cancel);
    if (scheme.empty() || scheme == "file") return file_sink(path_of(url), context.options);
    if (scheme == "pipe") return pipe_sink(url.substr(5), context.options, context.cancel);
    if (const Scheme* const found = Sources::scheme_for(url, context.options);
        found && found->write)
        return found->write(url, context);
    throw Error(SHF_E_USAGE, "shards cannot be written to " + scheme + ": URLs",
                "write to a path, and copy the shards; or give pipe:COMMAND");
}

}  // namespace shf
