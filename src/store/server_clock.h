// The clocks of servers that refuse signatures of another time than theirs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shf {

struct HttpAnswer;

// Seconds since 1970 as the clock of `server` shows them, as far as this process knows it.
int64_t server_time(const std::string& server);
// Learns that clock from an answer, to a request with the time `sent`: the text of a date as
// headers have it. False when the two were less than `slack` seconds apart, which explains no
// refusal, or when the answer has no date.
bool learn_server_time(const std::string& server, const std::string& sent, const HttpAnswer& answer,
                       int64_t slack);

}  // namespace shf
