#include "store/store_list.h"

#include "core/error.h"
#include "core/options.h"

#include <algorithm>
#include <set>
#include <utility>

namespace shf {

namespace {

constexpr unsigned most_empty = 1000;

}  // namespace

std::vector<std::string> list_pages(const std::string& prefix, const char* what,
                                    const Options& options,
                                    const std::function<StorePage(const std::string&)>& page) {
    const auto refuse = [&](const char* cause) {
        throw Error(SHF_E_NET_PERMANENT,
                    std::string("the list of the ") + what + " cannot be used: " + cause,
                    "look at what serves this endpoint, or name the shards one by one");
    };
    std::vector<std::string> keys;
    std::set<std::string> asked;
    std::string next;
    unsigned empty = 0;  // pages in a row
    do {
        StorePage found = page(next);
        // Stores may give some without keys: of folders, or of what was removed.
        empty = found.keys.empty() ? empty + 1 : 0;
        if (!found.next.empty() && (!asked.insert(found.next).second || empty > most_empty))
            refuse("its pages have no end");
        for (std::string& key : found.keys) {
            if (!key.starts_with(prefix)) refuse("it has keys that were not asked for");
            keys.push_back(std::move(key));
        }
        if (keys.size() > options.max_shards)
            throw Error(SHF_E_LIMIT,
                        std::string("the ") + what + " has more objects there than max_shards",
                        "give a longer prefix, or raise max_shards");
        next = std::move(found.next);
    } while (!next.empty());
    std::sort(keys.begin(), keys.end());
    if (std::adjacent_find(keys.begin(), keys.end()) != keys.end()) refuse("it has a key twice");
    return keys;
}

}  // namespace shf
