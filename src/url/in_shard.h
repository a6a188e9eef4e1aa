// Errors that say which shard they are about.
#pragma once

#include "core/error.h"
#include "url/redact.h"

#include <string>
#include <utility>

namespace shf {

// Runs `action` and returns its result; an Error gets the URL, without its secrets, as its shard.
template <typename Do>
auto in_shard(const std::string& url, Do action) {
    try {
        return action();
    } catch (const Error& error) {
        Fault fault = error.fault();
        fault.shard = redact(url);
        throw Error(std::move(fault));
    }
}

}  // namespace shf
