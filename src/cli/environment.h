// Variables of the environment.
#pragma once

#include <cstdlib>
#include <string>

namespace cli {

// Empty where it is not set.
inline std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value ? value : "";
}

}  // namespace cli
