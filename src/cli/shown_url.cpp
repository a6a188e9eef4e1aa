#include "cli/shown_url.h"

#include <algorithm>

namespace cli {

std::string shown_url(const std::string& url) {
    if (url.starts_with("pipe:")) {
        const size_t first = std::min(url.find_first_not_of(' ', 5), url.size());
        const size_t end = std::min(url.find(' ', first), url.size());
        const std::string word = url.substr(first, end - first);
        // "TOKEN=secret curl ..." begins with no command.
        if (word.find('=') != std::string::npos || word.find("://") != std::string::npos)
            return "pipe:...";
        return "pipe:" + word + (end < url.size() ? " ..." : "");
    }
    const size_t scheme = url.find("://");
    if (scheme == std::string::npos || url.starts_with("file://")) return url;
    std::string made = url.substr(0, url.find('?'));
    const size_t host = scheme + 3;
    const size_t path = std::min(made.find('/', host), made.size());
    const size_t user = made.rfind('@', path);
    // abfs://CONTAINER@ACCOUNT has a container there.
    if (user != std::string::npos && user >= host && !url.starts_with("abfs"))
        made.erase(host, user + 1 - host);
    return made;
}

}  // namespace cli
