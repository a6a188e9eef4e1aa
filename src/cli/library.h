// The library's handles as objects of C++: released by themselves, and what fails is thrown.
#pragma once

#include <shardfeed.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace cli {

// Exit statuses of the command.
enum Status : int { done = 0, failed = 1, wrong_command_line = 2 };

// Ends the command with `status`; what() is printed after "shardfeed: ".
class Failure : public std::runtime_error {
  public:
    Failure(int status, const std::string& message, int32_t code = SHF_E_USAGE)
        : std::runtime_error(message), status_(status), code_(code) {}
    [[nodiscard]] int status() const { return status_; }
    // The result of the library's call that failed.
    [[nodiscard]] int32_t code() const { return code_; }

  private:
    int status_;
    int32_t code_;
};

// Throws what a call of the library has said; `code` is its result.
[[noreturn]] void fail(int32_t code, const shf_error& error);

// Calls a function of the library with an shf_error behind `arguments`. Returns SHF_OK or SHF_END;
// throws Failure for errors.
template <typename Function, typename... Arguments>
int32_t call(Function function, Arguments... arguments) {
    shf_error error = {};
    const int32_t code = function(arguments..., &error);
    if (code < 0) fail(code, error);
    return code;
}

template <auto Release>
struct Releaser {
    template <typename Handle>
    void operator()(Handle* handle) const {
        Release(handle);
    }
};
using Options = std::unique_ptr<shf_options, Releaser<shf_options_free>>;
using Stream = std::unique_ptr<shf_stream, Releaser<shf_stream_close>>;
using Sample = std::unique_ptr<shf_sample, Releaser<shf_sample_unref>>;
using Block = std::unique_ptr<shf_block, Releaser<shf_block_unref>>;
using Members = std::unique_ptr<shf_members, Releaser<shf_members_close>>;
using Archive = std::unique_ptr<shf_archive, Releaser<shf_archive_close>>;
using Dataset = std::unique_ptr<shf_dataset, Releaser<shf_dataset_close>>;
using Plan = std::unique_ptr<shf_plan, Releaser<shf_plan_free>>;
using State = std::unique_ptr<shf_state, Releaser<shf_state_free>>;
using CacheReport = std::unique_ptr<shf_cache_report, Releaser<shf_cache_report_free>>;

inline std::string_view text(shf_bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data), bytes.size};
}
inline std::string_view key_of(const shf_sample* sample) {
    shf_bytes key;
    shf_sample_key(sample, &key);
    return text(key);
}
// Bytes of all fields together.
uint64_t payload_of(const shf_sample* sample);

}  // namespace cli
