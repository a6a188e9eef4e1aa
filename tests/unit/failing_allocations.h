// Allocations that fail on demand: of C++ (operator new) and, where nothing else has replaced it,
// of C (malloc and its kin, so that of codecs too). For one file of a program: it defines operator
// new.
//
//     const Outcome outcome = attempt(scenario, {n, true, Faults::heap});
//
// runs a scenario in which allocation number `n` fails, and with `lasting` each one after it. What
// a scenario allocates with operator new and leaves behind is seen.
#pragma once

#include "temp_shards.h"

#include <gtest/gtest.h>
#include <link.h>
#include <shardfeed.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <vector>

#if defined(__GLIBC__) && !SANITIZED
#define SHF_TEST_MALLOC 1
extern "C" {
void* __libc_malloc(size_t);            // NOLINT: of glibc
void* __libc_calloc(size_t, size_t);    // NOLINT
void* __libc_realloc(void*, size_t);    // NOLINT
void* __libc_memalign(size_t, size_t);  // NOLINT
}
#else
#define SHF_TEST_MALLOC 0
#endif

namespace shf::test {

struct Faults {
    enum Where : uint8_t { heap, allocator };
    int64_t number = -1;   // negative: none fails
    bool lasting = false;  // those after it too
    Where where = heap;
};

namespace faults {

// Counts down to the allocation that fails; negative: none does.
inline std::atomic<int64_t> until_failure{-1};
inline std::atomic<bool> lasting{false};
inline std::atomic<Faults::Where> where{Faults::heap};
inline std::atomic<uint64_t> failures{0};
inline std::atomic<int64_t> objects{0};  // of operator new that live
inline std::atomic<int64_t> pieces{0};   // of the allocator callback that live
// Allocations of this thread are the test's own.
inline thread_local bool exempt = false;

// Code whose allocations never fail.
struct Code {
    uintptr_t begin = 0, end = 0;
};
inline std::vector<Code> spared;

// Allocations by the loaded library with `name` in its path do not fail. For those that crash
// without memory.
inline void spare_library(const char* name) {
    ::dl_iterate_phdr(
        [](dl_phdr_info* library, size_t /*size*/, void* wanted) {
            if (!std::strstr(library->dlpi_name, static_cast<const char*>(wanted))) return 0;
            for (size_t i = 0; i < library->dlpi_phnum; ++i) {
                const auto& segment = library->dlpi_phdr[i];
                const uintptr_t begin = library->dlpi_addr + segment.p_vaddr;
                if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0)
                    spared.push_back({begin, begin + segment.p_memsz});
            }
            return 1;
        },
        const_cast<char*>(name));
}

inline bool fail(Faults::Where here, const void* caller = nullptr) {
    int64_t left = until_failure.load(std::memory_order_relaxed);
    if (left >= 0 && caller)
        for (const Code& code : spared)
            if (reinterpret_cast<uintptr_t>(caller) - code.begin < code.end - code.begin)
                return false;
    if (left < 0 || exempt || here != where.load(std::memory_order_relaxed)) return false;
    while (left >= 0) {
        const bool stays = left == 0 && lasting.load(std::memory_order_relaxed);
        if (!until_failure.compare_exchange_weak(left, stays ? 0 : left - 1)) continue;
        if (left != 0) return false;
        failures.fetch_add(1, std::memory_order_relaxed);
        errno = ENOMEM;
        return true;
    }
    return false;
}

// Not counted as an allocation.
inline void* raw_memory(size_t size) {
#if SHF_TEST_MALLOC
    return __libc_malloc(size);
#else
    return std::malloc(size);
#endif
}

inline void* object(size_t size, const void* caller) {
    void* memory = fail(Faults::heap, caller) ? nullptr : raw_memory(size > 0 ? size : 1);
    if (memory) objects.fetch_add(1, std::memory_order_relaxed);
    return memory;
}

inline void free_object(void* memory) {
    if (memory) objects.fetch_sub(1, std::memory_order_relaxed);
    std::free(memory);
}

// The functions of shf_options_set_allocator.
inline void* take_piece(void* /*ctx*/, size_t size, size_t alignment) {
    if (fail(Faults::allocator)) return nullptr;
    const bool before = std::exchange(exempt, true);
    void* memory = nullptr;
    if (::posix_memalign(&memory, alignment, size) != 0) memory = nullptr;
    exempt = before;
    if (memory) pieces.fetch_add(1, std::memory_order_relaxed);
    return memory;
}
inline void release_piece(void* /*ctx*/, void* memory, size_t /*size*/) {
    pieces.fetch_sub(1, std::memory_order_relaxed);
    std::free(memory);
}

// While it lives, this thread's allocations do not fail.
class Exempt {
  public:
    Exempt() : before_(std::exchange(exempt, true)) {}
    ~Exempt() { exempt = before_; }
    Exempt(const Exempt&) = delete;
    Exempt& operator=(const Exempt&) = delete;

  private:
    const bool before_;
};

}  // namespace faults

// What a scenario came to: the code of the call that failed, or that of a scenario that works.
struct Outcome {
    int32_t code = SHF_OK;
    uint64_t count = 0;    // of what was delivered
    uint64_t digest = 0;   // of its bytes, where a scenario looks at them
    bool sound = true;     // all of it was right, and calls behind the failure repeat it
    char message[1008]{};  // of the failure
    bool reached = false;  // an allocation did fail
    bool pools = false;    // what lives on waits for its next use, and is no leak
    int64_t left = 0;      // objects and pieces that live on
};

// Calls the library from the start to the end, closing what it opened.
using Scenario = std::function<void(Outcome&)>;

inline Outcome attempt(const Scenario& scenario, const Faults& plan) {
    const Watchdog watchdog{120};  // a hang
    Outcome outcome;
    const uint64_t failures = faults::failures;
    const int64_t objects = faults::objects, pieces = faults::pieces;
    faults::lasting = plan.lasting;
    faults::where = plan.where;
    faults::until_failure = plan.number;
    scenario(outcome);
    faults::until_failure = -1;
    outcome.reached = faults::failures != failures;
    outcome.left = faults::objects - objects + faults::pieces - pieces;
    return outcome;
}

// The counts of a loop over allocations, for reports.
struct Counts {
    uint64_t points = 0;  // runs in which one failed
    uint64_t nomem = 0;   // of them, those that ended with NOMEM; the others did without
};

// Every `stride`-th allocation of the scenario fails, once and from then on: it then ends with
// NOMEM or, where the library can do without, as if nothing had been. `allowed`: another code that
// a lack of memory may have, and that its message must name. Only allocations from `first` on and
// before `last`.
inline Counts fail_each_allocation(const Scenario& scenario, Faults::Where where, int64_t stride,
                                   const std::function<bool(const Outcome&)>& allowed = {},
                                   int64_t first = 0, int64_t last = INT64_MAX) {
    (void)attempt(scenario, {});  // what is made once for the program
    const Outcome whole = attempt(scenario, {});
    EXPECT_TRUE(whole.code == SHF_OK || whole.code == SHF_END) << whole.message;
    EXPECT_TRUE(whole.sound);
    EXPECT_TRUE(whole.pools || whole.left == 0) << whole.left;
    Counts counts;
    for (const bool lasting : {false, true}) {
        // Threads make the number of allocations vary a bit.
        int untouched = 0;
        constexpr int64_t most = 100000;
        int64_t n = first;
        for (; n < last && untouched < 5 && n < most && !testing::Test::HasFailure(); n += stride) {
            const Outcome outcome = attempt(scenario, {n, lasting, where});
            const std::string which = "allocation " + std::to_string(n) +
                                      (lasting ? " and all after it: " : ": ") + outcome.message;
            EXPECT_TRUE(outcome.sound) << which;
            EXPECT_TRUE(outcome.pools || outcome.left == 0) << outcome.left << " left: " << which;
            untouched = outcome.reached ? 0 : untouched + 1;
            counts.points += outcome.reached ? 1 : 0;
            if (outcome.code == whole.code) {
                EXPECT_EQ(outcome.count, whole.count) << which;
                EXPECT_EQ(outcome.digest, whole.digest) << which;
            } else {
                EXPECT_TRUE(outcome.reached) << which;
                EXPECT_TRUE(outcome.code == SHF_E_NOMEM || (allowed && allowed(outcome)))
                    << outcome.code << " at " << which;
                EXPECT_LE(outcome.count, whole.count) << which;
                ++counts.nomem;
            }
        }
        EXPECT_LT(n, most);
    }
    return counts;
}

}  // namespace shf::test

// ---- The allocations ----------------------------------------------------------------------------

void* operator new(size_t size) {
    if (void* memory = shf::test::faults::object(size, __builtin_return_address(0))) return memory;
    throw std::bad_alloc();
}
void* operator new[](size_t size) {
    if (void* memory = shf::test::faults::object(size, __builtin_return_address(0))) return memory;
    throw std::bad_alloc();
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
    return shf::test::faults::object(size, __builtin_return_address(0));
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
    return shf::test::faults::object(size, __builtin_return_address(0));
}
void operator delete(void* memory) noexcept {
    shf::test::faults::free_object(memory);
}
void operator delete[](void* memory) noexcept {
    shf::test::faults::free_object(memory);
}
void operator delete(void* memory, size_t) noexcept {
    shf::test::faults::free_object(memory);
}
void operator delete[](void* memory, size_t) noexcept {
    shf::test::faults::free_object(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
    shf::test::faults::free_object(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
    shf::test::faults::free_object(memory);
}

#if SHF_TEST_MALLOC
extern "C" {
void* malloc(size_t size) {
    return shf::test::faults::fail(shf::test::Faults::heap, __builtin_return_address(0))
               ? nullptr
               : __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
    return shf::test::faults::fail(shf::test::Faults::heap, __builtin_return_address(0))
               ? nullptr
               : __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) {
    return shf::test::faults::fail(shf::test::Faults::heap, __builtin_return_address(0))
               ? nullptr
               : __libc_realloc(memory, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
    void* memory = shf::test::faults::fail(shf::test::Faults::heap, __builtin_return_address(0))
                       ? nullptr
                       : __libc_memalign(alignment, size);
    if (!memory) return ENOMEM;
    *out = memory;
    return 0;
}
}
#endif
