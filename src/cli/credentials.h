// Where credentials for stores are, without a look at them.
#pragma once

#include <string>
#include <vector>

namespace cli {

struct StoreCredentials {
    const char* store;                // "s3"
    const char* help;                 // how to make some
    std::vector<std::string> places;  // "AWS_ACCESS_KEY_ID", "/home/me/.aws/credentials"
};

// Of every store; `places` are variables of the environment that are set and files that can be
// read. A machine of a cloud may have more, which only its metadata service says.
std::vector<StoreCredentials> store_credentials();

}  // namespace cli
