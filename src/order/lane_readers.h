// Who takes which sample of lanes that several consumers read. Consumer c of C reads the lanes l
// with l mod G = c mod G, where G = gcd(C, L). Those are all its own when C divides L. Else C / G
// consumers read the same lanes, see the same sequence of their samples, and take them in turn:
// without lanes that ended, that is element t of the global sequence for consumer t mod C.
#pragma once

#include <cstdint>
#include <numeric>

namespace shf {

struct LaneReaders {
    uint64_t lanes = 1, consumers = 1;  // both below 2^32

    // Of lanes, and of the consumers that read them.
    [[nodiscard]] uint64_t groups() const { return std::gcd(lanes, consumers); }
    // Consumers that read the same lanes.
    [[nodiscard]] uint64_t readers() const { return consumers / groups(); }
    // Which of them `consumer` is: sample number n of its lanes is its own if n mod readers() is
    // this.
    [[nodiscard]] uint64_t place(uint64_t consumer) const { return consumer / groups(); }
    // Whether one of the samples from `from` to before `to` is.
    [[nodiscard]] bool owns_any(uint64_t consumer, uint64_t from, uint64_t to) const {
        const uint64_t all = readers();
        return from + (place(consumer) + all - from % all) % all < to;
    }
};

}  // namespace shf
