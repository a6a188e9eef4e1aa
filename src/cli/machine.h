// What this machine gives to a process.
#pragma once

#include <cstdint>
#include <optional>

namespace cli {

struct Machine {
    unsigned cores = 0;                // of the machine
    unsigned usable_cores = 0;         // by the affinity of this process
    std::optional<double> core_limit;  // of its control groups: 1.5 cores
    uint64_t memory = 0;
    uint64_t free_memory = 0;              // with what the system would give up
    std::optional<uint64_t> memory_limit;  // of its control groups
    uint64_t open_files = 0;               // that it may have
    uint64_t most_open_files = 0;          // that it may ask for
};

Machine this_machine();

// Seconds of processor time of this process.
double processor_seconds();

}  // namespace cli
