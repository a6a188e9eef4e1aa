// The keys of this process for AWS, shared by all that is open, and renewed before they expire.
// They stay in memory.
#pragma once

#include "io/source_context.h"
#include "store/sigv4.h"

namespace shf {

// Those of the options, or the first that aws_chain.h finds. Waits for servers. Throws Error: AUTH
// when there are none, USAGE, NET_*, CANCELLED.
AwsKeys aws_keys(const SourceContext& context);
// After a server has refused `keys` as expired: looks for others. False: there are none.
bool renew_aws_keys(const AwsKeys& keys, const SourceContext& context);

}  // namespace shf
