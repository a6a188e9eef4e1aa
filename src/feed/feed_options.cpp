#include "feed/feed_options.h"

#include "core/error.h"
#include "url/braces.h"

#include <shardfeed.h>

#include <algorithm>
#include <array>

namespace shf {

namespace {

constexpr std::array<std::string_view, 5> groups = {"order", "consumer", "selection", "errors",
                                                    "leniency"};
// The decoding of JSON depends on pack, and a sample without a column on missing; a consumer knows
// its network.
constexpr std::array<std::string_view, 3> others = {"pack", "missing", "feed_compression"};
constexpr uint64_t most_servers = 4096;

bool is_one_of(std::span<const std::string_view> words, std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

// Of the options that a stream takes.
bool is_for_server(size_t index) {
    const std::string_view openers = describe_option(index, SHF_OPTION_OPENERS);
    const std::string padded = ' ' + std::string(openers) + ' ';
    return padded.find(" stream ") != std::string::npos &&
           (is_one_of(groups, describe_option(index, SHF_OPTION_GROUP)) ||
            is_one_of(others, describe_option(index, SHF_OPTION_NAME)));
}

bool is_for_server(std::string_view name) {
    for (size_t index = 0; const char* known = describe_option(index, SHF_OPTION_NAME); ++index)
        if (name == known) return is_for_server(index);
    return false;
}

}  // namespace

std::string options_for_feed(const Options& options) {
    std::string text;
    for (size_t index = 0; const char* name = describe_option(index, SHF_OPTION_NAME); ++index) {
        if (!is_for_server(index)) continue;
        const std::string value = options.get(name);
        if (value.find('\n') != std::string::npos)
            throw Error(SHF_E_USAGE, std::string("the option ") + name + " has several lines",
                        "give it in one line to a stream of a feed");
        if (value != default_of(name)) text += std::string(name) + '=' + value + '\n';
    }
    return text;
}

Options options_of_consumer(const Options& server, std::string_view text) {
    Options options = server;
    // Values that the server was started with are ignored.
    for (size_t index = 0; const char* name = describe_option(index, SHF_OPTION_NAME); ++index)
        if (is_for_server(index)) options.set(name, default_of(name));
    while (!text.empty()) {
        const size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        const size_t equals = line.find('=');
        const std::string_view name = line.substr(0, equals);
        if (equals == std::string_view::npos || !is_for_server(name))
            throw Error(SHF_E_USAGE,
                        "the option " + escape(name) + " is not for a server of a feed",
                        "use one version of shardfeed on all machines");
        options.set(name, line.substr(equals + 1));
    }
    return options;
}

bool is_feed(std::span<const char* const> urls) {
    const auto fed = std::count_if(urls.begin(), urls.end(), [](const char* url) {
        return std::string_view(url).starts_with(feed_scheme);
    });
    if (fed > 0 && fed < static_cast<ptrdiff_t>(urls.size()))
        throw Error(SHF_E_USAGE, "servers of a feed and shards in one list",
                    "open a stream of each and mix them");
    return fed > 0;
}

std::vector<std::string> feed_addresses(std::span<const char* const> urls, const Options& options) {
    std::vector<std::string> addresses;
    const auto add = [&](std::string address) {
        const std::string_view place = std::string_view(address).substr(feed_scheme.size());
        const size_t colon = place.rfind(':');
        const bool port =
            colon != std::string_view::npos && colon > 0 && colon + 1 < place.size() &&
            place.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
        if (!port)
            throw Error(SHF_E_USAGE, escape(address) + " is no address of a feed",
                        "give feed://HOST:PORT, several as feed://host-{0..3}:7880");
        if (addresses.size() == most_servers)
            throw Error(SHF_E_USAGE,
                        "a feed of more than " + std::to_string(most_servers) + " servers",
                        "give each rank some of them");
        if (std::find(addresses.begin(), addresses.end(), address) == addresses.end())
            addresses.push_back(std::move(address));
    };
    for (const char* url : urls) {
        if (!options.expand) {
            add(url);
            continue;
        }
        const BracePattern pattern(url);
        for (uint64_t i = 0; i < std::min(pattern.count(), most_servers + 1); ++i)
            add(pattern.at(i));
    }
    return addresses;
}

}  // namespace shf
