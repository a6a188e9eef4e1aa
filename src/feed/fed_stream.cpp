#include "feed/fed_stream.h"

#include "batch/decode_spec.h"
#include "core/error.h"
#include "feed/feed_client.h"
#include "feed/feed_options.h"

#include <string>
#include <utility>
#include <vector>

namespace shf {

namespace {

// The columns are those that the servers decode.
void take_columns(Options& options, const WelcomeFrame& welcome) {
    if (!welcome.rows || options.batch == 0) return;  // see FedLane
    const bool own = options.decode != default_of("decode");
    if (own && !(DecodeSpec::parse(options.decode) == DecodeSpec::parse(welcome.decode)))
        throw Error(SHF_E_USAGE, "the feed decodes other columns: " + escape(welcome.decode),
                    "leave out decode, or give the same value as the feed");
    if (!own) options.decode = welcome.decode;
}

}  // namespace

std::unique_ptr<Stream> open_fed_stream(std::span<const char* const> urls, const Options& options) {
    auto client = std::make_unique<FeedClient>(feed_addresses(urls, options), options);
    const WelcomeFrame& welcome = client->welcome();
    Options own = options;
    own.expand = false;  // these are names
    take_columns(own, welcome);
    std::vector<const char*> names;
    for (const std::string& shard : welcome.shards) names.push_back(shard.c_str());
    auto stream = std::make_unique<Stream>(names, own, std::move(client));
    return stream;
}

}  // namespace shf
