// What a store says when it refuses, as an error of ours.
#pragma once

#include "core/error.h"
#include "http/http_answer.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace shf {

struct Refusal {
    const char* code;  // the store's
    int32_t error;     // SHF_E_*
    const char* help;
};

struct Refused {
    std::string code{};     // empty: not said
    std::string message{};  // without secrets
    std::string request{};  // empty: that of the answer
    std::string host{};     // empty: not said
};
// By the row of `refusals` that has its code, else by the status: "the server answers 403
// AccessDenied: ... (request 17)". Rows of SHF_E_AUTH are not for requests without credentials:
// those get `anonymous_help`, unless it is NULL. `credentials_help` is for other refusals of
// credentials.
Error refusal_error(const HttpAnswer& answer, const Refused& refused,
                    std::span<const Refusal> refusals, const char* anonymous_help,
                    const char* credentials_help);

}  // namespace shf
