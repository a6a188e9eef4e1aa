// The list of a store, which comes page by page.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace shf {

struct Options;

struct StorePage {
    std::vector<std::string> keys;
    std::string next;  // what the next page is asked for with; empty: this is the last one
};

// All keys in the order of their bytes. `page` gives the first page for an empty text, else the one
// that the text of the page before asks for. `what`: "bucket", for messages. Throws what `page`
// throws, and Error: NET_PERMANENT for lists without an end, with other keys than those that begin
// with `prefix`, and with a key twice; LIMIT for more keys than max_shards.
std::vector<std::string> list_pages(const std::string& prefix, const char* what,
                                    const Options& options,
                                    const std::function<StorePage(const std::string& next)>& page);

}  // namespace shf
