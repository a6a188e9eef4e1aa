// What is done once for each shard of a list before anything is read: opened, or looked at.
#pragma once

#include "core/cancel.h"
#include "io/urls.h"

#include <cstdint>
#include <functional>
#include <string>

namespace shf {

struct Options;

// Whether its shards lie elsewhere than on this machine: each read of one is a request.
bool are_remote(const ShardList& shards);

// Calls job(number, url) for every shard of the list. Where shards lie on a network that this
// library reads, several calls are made at once, on threads that live as long as this call, and
// this thread asks whether the program still wants it (Opening); else all are made on this thread,
// in their order. After one has thrown, no later ones are begun. Throws what the first one of the
// list threw, with its URL as the shard; or why the call is to end, after it has requested
// `cancel`, which the jobs must heed.
void for_each_shard(const ShardList& shards, const Options& options, Cancel& cancel,
                    const std::function<void(uint64_t, const std::string&)>& job);

}  // namespace shf
