// Exceptions to codes.
#pragma once

#include "core/error.h"

namespace shf {

// Runs the body of an exported function. Whatever it throws becomes a code and the caller's error:
// nothing but a value crosses the border.
template <typename Body>
int32_t guard(shf_error* error, Body body) noexcept {
    try {
        return body();
    } catch (...) {
        const Fault fault = describe_exception();
        write_error(error, fault);
        return fault.code;
    }
}

// The same for what has no option on_error, because it delivers all that it is asked for or
// nothing: no help says to skip.
template <typename Body>
int32_t guard_without_skips(shf_error* error, Body body) noexcept {
    try {
        return body();
    } catch (...) {
        Fault fault = describe_exception();
        drop_skips(fault);
        write_error(error, fault);
        return fault.code;
    }
}

}  // namespace shf
