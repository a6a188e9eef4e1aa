// Adds the shards that are messages of ZeroMQ to Sources: zpull, zsub, zrpull and zrsub are read,
// zpush, zpub, zrpush and zrpub are written.
#pragma once

namespace shf {

void add_message_schemes();

}  // namespace shf
