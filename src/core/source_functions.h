// What a program serves the URLs of a scheme with (shf_options_set_source).
#pragma once

#include <shardfeed.h>

#include <string>
#include <utility>

namespace shf {

// Shared by all copies of the options and by what was opened with them; the last one releases ctx.
class SourceFunctions {
  public:
    SourceFunctions(std::string scheme, const shf_source& functions, void* ctx)
        : scheme_(std::move(scheme)), functions_(functions), ctx_(ctx) {}
    ~SourceFunctions() {
        if (owns_ && functions_.release) functions_.release(ctx_);
    }
    SourceFunctions(const SourceFunctions&) = delete;
    SourceFunctions& operator=(const SourceFunctions&) = delete;

    // From now on ctx is the library's: until then nothing that fails may release it.
    void own() noexcept { owns_ = true; }

    // "s3", or "*": all schemes that have no functions of their own.
    [[nodiscard]] const std::string& scheme() const { return scheme_; }
    [[nodiscard]] void* ctx() const { return ctx_; }
    const shf_source* operator->() const { return &functions_; }

  private:
    const std::string scheme_;
    const shf_source functions_;
    void* const ctx_;
    bool owns_ = false;
};

}  // namespace shf
